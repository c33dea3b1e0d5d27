"""Lets other requests run while a thread does long work, such as a loop over all recordings."""

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")

SHORT_TURN_SECONDS = 0.0005
"""A switch interval in seconds: the time after which the interpreter lets another thread run. It is a tenth of the
interpreter's default."""

_lock = threading.Lock()
_usual: list[float] = []
"""One entry for each thread that works in short turns now: the switch interval before this thread began."""


@contextmanager
def short_turns() -> Iterator[None]:
    """Lets other threads run ten times as often while this thread computes.

    A request waits for the interpreter some ten times: at each read and write of its socket. With the default switch
    interval of 5 ms, a request beside a thread that computes for half a second would take 50 ms and more.
    """
    with _lock:
        _usual.append(sys.getswitchinterval())
        sys.setswitchinterval(SHORT_TURN_SECONDS)
    try:
        yield
    finally:
        with _lock:
            first = _usual[0]
            _usual.pop()
            if not _usual:
                sys.setswitchinterval(first)


def in_turns(items: Iterable[Item], count: int) -> Iterator[Item]:
    """Yields the items of `items`. Before each `count` items, lets other threads run.

    Choose `count` so that the work on `count` items takes about 1 ms. Without such pauses, a request loses 5 ms (the
    interpreter's switch interval) each time that it has waited for anything. Beside a long loop, the request then takes
    many times as long."""
    for position, item in enumerate(items):
        if position % count == 0:
            time.sleep(0)
        yield item
