"""Growing counters made into rates: what each grew by since the reading before, per second."""

import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Clock = Callable[[], float]


class Rates:
    """Remembers the last reading of each counter. Not for several threads at once."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._last: dict[Hashable, tuple[float, float]] = {}

    def per_second(self, counters: Mapping[Key, float]) -> dict[Key, float]:
        """The rate of each counter, in its unit per second.

        Left out: a counter that is read for the first time, and one that shrank (it was reset, or it wrapped). A
        counter that is not given is forgotten.
        """
        now = self._clock()
        found = {}
        for key, value in counters.items():
            since, before = self._last.get(key, (now, value))
            if now > since and value >= before:
                found[key] = (value - before) / (now - since)
        self._last = {key: (now, value) for key, value in counters.items()}
        return found
