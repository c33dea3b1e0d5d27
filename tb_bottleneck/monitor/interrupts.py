"""Holds Ctrl-C back while the monitor works, so that it neither loses a recording nor leaves torch changed."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Holds a Ctrl-C back until the block ends, and passes it to the training's own handler then.

    A second Ctrl-C passes at once. One that comes while a KeyboardInterrupt already ends the training is not repeated.
    On other threads than the main one, where Python handles no signals, nothing is held.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    ends_already = isinstance(sys.exc_info()[1], KeyboardInterrupt)
    held: list[tuple[int, FrameType | None]] = []

    def hold(number: int, frame: FrameType | None) -> None:
        if held:
            before(number, frame)
        held.append((number, frame))

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is hold:  # the training may set its own handler meanwhile
            signal.signal(signal.SIGINT, before)
    if held and not ends_already:
        before(*held[0])
