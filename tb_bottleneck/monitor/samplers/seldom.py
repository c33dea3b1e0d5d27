"""A limit for readings that are expensive."""

from collections.abc import Callable
from typing import TypeVar

from tb_bottleneck.monitor.samplers.rates import Clock

Value = TypeVar("Value")

LEAST_S = 30.0
"""Time between two readings."""
SHARE = 1e-3
"""Share of the time that such readings may take. While the kernel sums the pages of a process, the process can neither
map nor unmap memory: measured 1 to 2 ms for 3 GB in huge pages, and more with small ones."""


class Seldom:
    """Calls a function at most every LEAST_S, and less often if it takes more than SHARE of the time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next: float | None = None

    def read(self, function: Callable[[], Value]) -> Value | None:
        """Returns the function's result, or None if it is not due."""
        began = self._clock()
        if self._next is not None and began < self._next:
            return None
        try:
            return function()
        finally:
            self._next = began + max(LEAST_S, (self._clock() - began) / SHARE)
