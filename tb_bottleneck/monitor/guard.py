"""Protects the training from the monitor: errors of the monitor do not reach it, Ctrl-C and SIGTERM wait until the
monitor has finished what it is doing, and replaced attributes of torch are restored, or only pass calls on."""

import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, TypeVar


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Delays a Ctrl-C until the `with` block ends, and then passes it to the training's own handler.

    A Ctrl-C while the monitor works therefore neither loses a recording nor leaves torch changed. A second Ctrl-C is
    passed on at once. If a KeyboardInterrupt already ends the training, a Ctrl-C is not passed on. Python handles
    signals on the main thread only, so nothing is delayed on other threads."""
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
    """Delays SIGTERM until the `with` block ends, and then passes it to the training, where it usually ends the
    process.

    No half-written file remains, because the process does not end within the block. The block must be short: a
    scheduler that ends a job waits only for some seconds. Nothing is delayed on threads other than the main thread, or
    if the signal is ignored or handled outside of Python."""
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


_ABSENT = object()


class Patches:
    """The attributes of torch that are replaced while a monitor is on, in order. They are restored when the monitor
    ends.

    A replacement checks `live` before it runs code of the monitor. If other code replaced an attribute after the
    monitor did, `restore` keeps the other code's replacement. The other code may still call the monitor's replacement,
    which then only passes the call on."""

    def __init__(self) -> None:
        self.live = False
        """True while replacements may run code of the monitor. Every hook reads it."""
        self._replaced: list[tuple[Any, str, Any, Any]] = []

    def activate(self) -> None:
        """Makes replacements run code of the monitor."""
        self.live = True

    def deactivate(self) -> None:
        """Makes replacements only pass calls on."""
        self.live = False

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Sets the attribute `name` of `owner` to `make(current value)`. Raises AttributeError if there is no such
        attribute."""
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


log = logging.getLogger("tb_bottleneck.monitor")
MAX_NOTES = 256

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class MonitorNote:
    """An event in the monitor: its time, a code of `telemetry.proto`, and one sentence."""

    unix_ns: int
    code: str
    detail: str


class Guard:
    """Runs the monitor's code so that its exceptions do not reach the training. A signal is a named part of the
    monitor.

    A signal that fails is disabled, with one warning and one note."""

    def __init__(self) -> None:
        self.off: dict[str, str] = {}
        """The disabled signals, with the reason. Read-only for others."""
        self._notes: list[MonitorNote] = []
        self._noted: set[tuple[str, str]] = set()
        self._lock = threading.Lock()
        self._warned_of_disk = False

    def is_on(self, signal: str) -> bool:
        """Returns True if the part of the monitor with the name `signal` has not failed."""
        return signal not in self.off

    def call(self, signal: str, work: Callable[..., Result], *arguments: object) -> Result | None:
        """Calls `work` with `arguments` and returns its result. Returns None if `signal` is disabled, or if `work`
        fails, which disables the signal."""
        if signal in self.off:
            return None
        try:
            return work(*arguments)
        except Exception as error:  # a signal must never disturb the training, and torch may raise anything
            self.switch_off(signal, error)
            return None

    def switch_off(self, signal: str, error: Exception) -> None:
        """Disables `signal` permanently because of `error`, with one warning and one note."""
        because = f"it failed with {type(error).__name__}"
        with self._lock:
            if signal in self.off:
                return
            self.off[signal] = because
        log.warning("the monitor continues without %r: %s: %s", signal, because, error)
        log.debug("failure of %r", signal, exc_info=error)
        # An error message may contain paths and names, so it is not written to the file.
        self.note("signal_off", f"{signal}: {because}")

    def warn_of_disk(self, error: Exception) -> None:
        """Logs a warning that the monitor cannot write its data: once per Guard, and only if `error` is an OSError."""
        with self._lock:
            if self._warned_of_disk or not isinstance(error, OSError):
                return
            self._warned_of_disk = True
        log.warning(
            "the monitor cannot write (%s): its data is lost until it can; the training is not affected",
            error.strerror or type(error).__name__,
        )

    def note(self, code: str, detail: str) -> None:
        """Adds a note that will be written to the event file: `code` is a code of telemetry.proto, `detail` one
        sentence. Of equal notes, only the first is kept. Notes are dropped while MAX_NOTES notes wait to be written."""
        with self._lock:
            if (code, detail) in self._noted or len(self._notes) >= MAX_NOTES:
                return
            if len(self._noted) < MAX_NOTES:
                self._noted.add((code, detail))
            self._notes.append(MonitorNote(time.time_ns(), code, detail))

    def take_notes(self) -> list[MonitorNote]:
        """Returns the notes since the last call, oldest first."""
        with self._lock:
            taken, self._notes = self._notes, []
        return taken

    def missing(self) -> dict[str, str]:
        """Returns the disabled signals, each with the reason."""
        with self._lock:
            return dict(self.off)
