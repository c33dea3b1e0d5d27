"""Replaces attributes of torch while a monitor is on, and restores them when it ends."""

from collections.abc import Callable
from typing import Any

_ABSENT = object()


class Patches:
    """The replaced attributes, in order. A replacement checks `live` before it runs code of the monitor.

    If other code has replaced an attribute after the monitor, restoring keeps that replacement: it still calls the
    monitor's, which then only passes the call on.
    """

    def __init__(self) -> None:
        self.live = False
        """True while replacements may run code of the monitor. Read by every hook."""
        self._replaced: list[tuple[Any, str, Any, Any]] = []

    def activate(self) -> None:
        """Lets replacements run code of the monitor."""
        self.live = True

    def deactivate(self) -> None:
        """Makes replacements only pass calls on."""
        self.live = False

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Sets `owner.name` to `make(current value)`. Raises AttributeError if there is no such attribute."""
        current = getattr(owner, name)
        before = vars(owner).get(name, _ABSENT)
        new = make(current)
        setattr(owner, name, new)
        self._replaced.append((owner, name, before, new))

    def restore(self) -> None:
        """Restores all attributes in reverse order. May be called twice."""
        self.deactivate()
        while self._replaced:
            owner, name, before, new = self._replaced.pop()
            if vars(owner).get(name) is not new:
                continue
            if before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
