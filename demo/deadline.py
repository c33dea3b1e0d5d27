"""A time limit for `demo record --minutes`."""

import time


class Deadline:
    """Decides when to start no further variant: if the longest one so far would exceed the allowed minutes."""

    def __init__(self, minutes: float | None) -> None:
        self.ends = None if minutes is None else time.monotonic() + 60 * minutes
        self.began: float | None = None
        self.longest = 0.0

    def is_near(self) -> bool:
        """Returns True if no further variant should start. Call it before each variant."""
        now = time.monotonic()
        if self.began is not None:
            self.longest = max(self.longest, now - self.began)
        self.began = now
        return self.ends is not None and now + self.longest > self.ends
