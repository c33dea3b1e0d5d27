"""When to stop beginning new work, for a recorder that is given only so many minutes."""

import time


class Deadline:
    """Says when no further half may begin: when the longest one so far would not end within the minutes allowed."""

    def __init__(self, minutes: float | None) -> None:
        self.ends = None if minutes is None else time.monotonic() + 60 * minutes
        self.began: float | None = None
        self.longest = 0.0

    def is_near(self) -> bool:
        """To be asked before each half."""
        now = time.monotonic()
        if self.began is not None:
            self.longest = max(self.longest, now - self.began)
        self.began = now
        return self.ends is not None and now + self.longest > self.ends
