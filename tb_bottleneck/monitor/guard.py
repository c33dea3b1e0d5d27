"""Protects the training from errors of the monitor: a failing signal is disabled, with one warning and one note."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

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
    """Runs the monitor's code so that its exceptions do not reach the training."""

    def __init__(self) -> None:
        self.off: dict[str, str] = {}
        """The disabled signals, with the reason. Read-only for others."""
        self._notes: list[MonitorNote] = []
        self._noted: set[tuple[str, str]] = set()
        self._lock = threading.Lock()
        self._warned_of_disk = False

    def is_on(self, signal: str) -> bool:
        """Returns True if the signal has not failed."""
        return signal not in self.off

    def call(self, signal: str, work: Callable[..., Result], *arguments: object) -> Result | None:
        """Calls `work` and returns its result; None if the signal is disabled or fails now, which disables it."""
        if signal in self.off:
            return None
        try:
            return work(*arguments)
        except Exception as error:  # a signal must never disturb the training, and torch may raise anything
            self.switch_off(signal, error)
            return None

    def switch_off(self, signal: str, error: Exception) -> None:
        """Disables a signal permanently, with one warning and one note."""
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
        """Logs one warning per process about data of the monitor that cannot be written."""
        with self._lock:
            if self._warned_of_disk or not isinstance(error, OSError):
                return
            self._warned_of_disk = True
        log.warning(
            "the monitor cannot write (%s): its data is lost until it can; the training is not affected",
            error.strerror or type(error).__name__,
        )

    def note(self, code: str, detail: str) -> None:
        """Adds a note for the file. Equal notes are kept once; at most MAX_NOTES wait to be written."""
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
        """Returns a copy of `off`."""
        with self._lock:
            return dict(self.off)
