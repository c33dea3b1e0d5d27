"""A bounded map that drops the least recently used entry."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """The map. It has no lock; its owner holds one."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """Returns the value and marks it as used; returns None if there is none."""
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def put(self, key: Key, value: Value) -> None:
        """Adds the value, and drops the least recently used one if there are too many."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._capacity:
            self._entries.popitem(last=False)

    def values(self) -> list[Value]:
        """Returns all values, the least recently used one first."""
        return list(self._entries.values())

    def keep(self, wanted: Callable[[Key], bool]) -> None:
        """Drops every key for which `wanted` returns False."""
        for key in [key for key in self._entries if not wanted(key)]:
            del self._entries[key]
