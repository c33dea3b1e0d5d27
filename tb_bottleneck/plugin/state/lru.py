"""A bounded map that forgets what was not asked for the longest."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """Not locked: its owner is."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """The value, which counts as asked for; None where it is not, or no more, there."""
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def put(self, key: Key, value: Value) -> None:
        """Keeps the value and forgets the least recently asked one where there are too many."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._capacity:
            self._entries.popitem(last=False)

    def keep(self, wanted: Callable[[Key], bool]) -> None:
        """Forgets every key that is not wanted."""
        for key in [key for key in self._entries if not wanted(key)]:
            del self._entries[key]
