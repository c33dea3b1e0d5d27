"""Loops over all recordings that let other requests run."""

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def in_turns(items: Iterable[Item], count: int) -> Iterator[Item]:
    """Yields the items, and lets other threads run before each `count` of them.

    Choose a count that takes about 1 ms. Otherwise each request waits 5 ms, the interpreter's switch interval, whenever
    it waited for anything, and takes many times as long beside a long loop.
    """
    for position, item in enumerate(items):
        if position % count == 0:
            time.sleep(0)
        yield item
