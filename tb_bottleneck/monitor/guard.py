"""What keeps the training safe from the monitor: a signal that fails is switched off, with one warning and one note."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

log = logging.getLogger("tb_bottleneck.monitor")
MAX_NOTES = 256

Given = TypeVar("Given")


@dataclass(frozen=True, slots=True)
class MonitorNote:
    """Something that happened to the monitor at one moment: `unix_ns`, a code of `telemetry.proto`, one sentence."""

    unix_ns: int
    code: str
    detail: str


class Guard:
    """Runs the monitor's own code so that none of its failures reaches the training."""

    def __init__(self) -> None:
        self.off: dict[str, str] = {}
        """The signals that were switched off, and why; for others to read."""
        self._notes: list[MonitorNote] = []
        self._told: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    def is_on(self, signal: str) -> bool:
        """Whether the signal has not failed yet."""
        return signal not in self.off

    def call(self, signal: str, work: Callable[..., Given], *arguments: object) -> Given | None:
        """What `work` gives; None where the signal is off, or where it just failed and was switched off."""
        if signal in self.off:
            return None
        try:
            return work(*arguments)
        except Exception as error:  # the training outranks every signal, and torch may raise anything
            self.switch_off(signal, error)
            return None

    def switch_off(self, signal: str, error: Exception) -> None:
        """Ends a signal for good, with one warning and one note."""
        because = f"it failed with {type(error).__name__}"
        with self._lock:
            if signal in self.off:
                return
            self.off[signal] = because
        log.warning("the monitor goes on without %r: %s: %s", signal, because, error)
        log.debug("how %r failed", signal, exc_info=error)
        # What an error says may hold paths and names, so it stays out of the file.
        self.note("signal_off", f"{signal}: {because}")

    def note(self, code: str, detail: str) -> None:
        """Keeps a note for the file; the same one is kept once, and no more than MAX_NOTES wait to be written."""
        with self._lock:
            if (code, detail) in self._told or len(self._notes) >= MAX_NOTES:
                return
            if len(self._told) < MAX_NOTES:
                self._told.add((code, detail))
            self._notes.append(MonitorNote(time.time_ns(), code, detail))

    def take_notes(self) -> list[MonitorNote]:
        """The notes since the last call, oldest first."""
        with self._lock:
            taken, self._notes = self._notes, []
        return taken

    def missing(self) -> dict[str, str]:
        """A copy of `off`."""
        with self._lock:
            return dict(self.off)
