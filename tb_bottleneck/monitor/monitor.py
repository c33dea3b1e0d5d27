"""The front of the monitor: one line around a training."""

import atexit
import logging
import os
import threading
import weakref
from types import TracebackType
from typing import Any

from tb_bottleneck.errors import BottleneckError, Unusable
from tb_bottleneck.monitor.session import MonitorOptions, Session
from tb_bottleneck.monitor.writer.writer_thread import PACKET_S

LEAST_S, MOST_S = 0.05, 3600.0
"""Bounds on the time between two packets: less would take a core, more would lose too much of a killed training."""

_log = logging.getLogger("tb_bottleneck.monitor")
_lock = threading.Lock()
_active: "Monitor | None" = None


class Monitor:
    """Writes down how a training's steps spend their time, into a run directory of its own under `logdir`.

        with Monitor("runs/mine"):
            for batch in loader:
                ...

    Steps are found by torch's optimizer hooks, and waits for data in torch's DataLoader. A loop without a torch
    optimizer calls `step()` at the end of each step. A trace of a few steps is recorded after warm-up, and again when
    the run changes, at most `captures` times (0 records none). A packet is written every `every_s` seconds.

    Give `model` where you can. Its forward pass is timed then; without it, that time cannot be told from Python's own,
    and nothing is said of regimes `host` and `launch` before a trace tells. To find the model by itself the monitor
    would have to hang a hook into every module, which costs 1 to 2 µs for each call of each (torch 2.13, measured).

    It never raises into the training: where it cannot work it says so once, in a warning of the logger
    `tb_bottleneck.monitor`. In one process one monitor works at a time; a second one only passes `step()` on.
    """

    def __init__(
        self, logdir: "str | os.PathLike[str]", *, model: Any = None, captures: int = 3, every_s: float = PACKET_S
    ) -> None:
        self._logdir = logdir
        self._model = model
        self._captures = captures
        self._every_s = every_s
        self._session: Session | None = None
        self.directory: str | None = None
        """Where it writes, once it does."""

    def __enter__(self) -> "Monitor":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Begins. Called twice, the second call does nothing."""
        global _active
        with _lock:
            if _active is not None:
                if _active is not self:
                    _log.warning(
                        "another Monitor is at work in this process; this one records nothing: stop that one first"
                    )
                return
            try:
                self._begin()
            except Exception as error:  # a training goes on without a monitor, whatever is wrong with it
                words = str(error) if isinstance(error, BottleneckError) else f"{type(error).__name__}: {error}"
                _log.warning("the training is not monitored: %s", words)
                self._session = None
                return
            _active = self
        atexit.register(self.stop)

    def stop(self) -> None:
        """Writes what is left and puts torch back as it was. It may be called twice."""
        global _active
        with _lock:
            session, self._session = self._session, None
            if session is None:
                return
            if _active is self:
                _active = None
        atexit.unregister(self.stop)
        try:
            session.stop()
        except Exception as error:  # as above
            _log.warning("the monitor ended badly: %s: %s", type(error).__name__, error)

    def step(self, samples: float | None = None) -> None:
        """Ends a step here. From the first call on, steps end here and nowhere else. `samples` counts them, where no
        DataLoader does."""
        session = self._working()
        if session is not None:
            session.step(samples)

    def capture(self) -> None:
        """Asks for a trace of the next steps."""
        session = self._working()
        if session is not None:
            session.captures.ask("asked for by the training")

    def _begin(self) -> None:
        from pathlib import Path

        if "://" in str(self._logdir):
            raise Unusable(f"{self._logdir} is a URL, and a monitor writes to local directories only: give it one")
        every_s = min(max(LEAST_S, float(self._every_s)), MOST_S)
        session = Session(MonitorOptions(Path(self._logdir).expanduser(), self._model, int(self._captures), every_s))
        self.directory = str(session.start())
        self._session = session
        _SESSIONS.add(session)

    def _working(self) -> Session | None:
        other = _active
        return self._session or (other._session if other is not None else None)


_SESSIONS: "weakref.WeakSet[Session]" = weakref.WeakSet()


def _in_forked_child() -> None:
    """A forked process (a loader's worker) inherits the hooks but not the thread: there they do nothing."""
    global _active, _lock
    _lock = threading.Lock()  # it may have been held when the process forked
    if _active is not None:
        _active._session = None
        _active = None
    for session in list(_SESSIONS):
        session.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_child)
