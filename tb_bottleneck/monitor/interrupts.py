"""Holds signals back while the monitor works: Ctrl-C, so that it neither loses a recording nor leaves torch changed,
and SIGTERM, so that no half-written file remains."""

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


@contextmanager
def termination_held() -> Iterator[None]:
    """Holds SIGTERM back until the block ends, and gives it to the training then: by default it ends the process.

    For short blocks: a scheduler that ends a job waits for some seconds. On other threads than the main one nothing is
    held, nor if the signal is ignored or handled outside of Python.
    """
    before = signal.getsignal(signal.SIGTERM)
    if threading.current_thread() is not threading.main_thread() or before in (signal.SIG_IGN, None):
        yield
        return
    held: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        held.append(number)

    signal.signal(signal.SIGTERM, hold)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is hold:  # the training may set its own handler meanwhile
            signal.signal(signal.SIGTERM, before)
        if held:
            signal.raise_signal(signal.SIGTERM)
