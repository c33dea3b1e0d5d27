"""Attributes of torch that are replaced while a monitor is on, and put back when it ends."""

from collections.abc import Callable
from typing import Any

_ABSENT = object()


class Patches:
    """Replaced attributes, in order. A replacement asks `live` before it does anything of ours.

    Where somebody else has replaced an attribute after us, restoring leaves theirs in place: it still calls ours, which
    then only passes the call on.
    """

    def __init__(self) -> None:
        self.live = False
        self._replaced: list[tuple[Any, str, Any, Any]] = []

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Sets `owner.name` to `make(what it is now)`. Raises AttributeError where there is no such attribute."""
        now = getattr(owner, name)
        before = vars(owner).get(name, _ABSENT)
        new = make(now)
        setattr(owner, name, new)
        self._replaced.append((owner, name, before, new))

    def restore(self) -> None:
        """Puts everything back, last one first. It may be called twice."""
        self.live = False
        while self._replaced:
            owner, name, before, new = self._replaced.pop()
            if vars(owner).get(name) is not new:
                continue
            if before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
