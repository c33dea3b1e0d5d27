"""Converts increasing counters to rates: the increase since the last reading, per second."""

import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Clock = Callable[[], float]


class Rates:
    """The last reading of each counter. Not thread-safe."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._last: dict[Hashable, tuple[float, float]] = {}

    def per_second(self, counters: Mapping[Key, float]) -> dict[Key, float]:
        """Returns the rate of each counter, in its unit per second.

        A counter has no rate at its first reading, and if it has decreased (it was reset, or it overflowed). A counter
        that is missing in `counters` is forgotten.
        """
        now = self._clock()
        rates = {}
        for key, value in counters.items():
            since, before = self._last.get(key, (now, value))
            if now > since and value >= before:
                rates[key] = (value - before) / (now - since)
        self._last = {key: (now, value) for key, value in counters.items()}
        return rates
