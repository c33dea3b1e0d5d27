"""The public interface of the monitor: a context manager around a training loop."""

import atexit
import logging
import os
import sys
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

from tb_bottleneck.base.errors import BottleneckError, Unusable
from tb_bottleneck.monitor.session import MonitorOptions, Session
from tb_bottleneck.monitor.writer.writer_thread import PACKET_S

MIN_INTERVAL_S, MAX_INTERVAL_S = 0.05, 3600.0
"""Limits of the time in s between two packets (writes of new data). A shorter time would use a core. A longer time
would lose too much data of a killed training."""

_log = logging.getLogger("tb_bottleneck.monitor")
_lock = threading.Lock()
_active: "Monitor | None" = None


class Monitor:
    """Records how the steps of a training run spend their time, into its own run directory under `logdir`.

        with Monitor("runs/mine"):
            for batch in loader:
                ...

    Steps are detected with torch's optimizer hooks, and waits for data in torch's DataLoader. A loop without a torch
    optimizer must call `step()` at the end of each step. A trace of a few steps is recorded after warm-up, and again
    when the run changes, at most `captures` times (0 records none). The data is written every `every_s` seconds.

    Pass `model` if possible, so that its forward pass is timed. Otherwise the monitor looks, once after the first step
    of each optimizer, for the modules that own the optimizer's parameters. If there are none, forward time cannot be
    separated from other Python time, and the regimes `host` (Python outside torch) and `launch` (launch overhead) get
    no verdict before a trace is recorded.

    `memory_snapshots` is the maximum number of snapshots of the CUDA allocator: they are written with a trace, at a new
    peak, and when memory runs out. If it is above 0, torch records a stack for each allocation, which takes about 2 µs,
    and each snapshot stops the training for up to a second.

    The commit that is checked out in the training script's repository is recorded; it is read from the files of the
    repository. `revision` states another name for the version of the program; "" records none.

    With `module_depth`, the traces contain the modules of the model under their own names (`encoder.layers.3`), down
    to this depth: 1 marks the children of the model. Each marked call takes about 35 µs more (on a busy CPU), in
    recorded steps only. If torch.compile has compiled code, no module is marked.

    In the workers of DataLoaders, a thread reads the stack of the worker 20 times per second, so that the report can
    name the stage that takes the time: reading, decoding, a transform. `worker_init_fn` is called as before.
    `sample_workers=False` switches this thread off.

    With `check_machine`, the ranks of a job measure their devices, cores, memory and links together for 3 s after the
    second step, so that the report of the job can tell a slow machine from slow code. All ranks have to pass it.
    `tb-bottleneck capture --machine` requests the same later.

    The monitor never raises into the training: if it cannot work, it logs one warning to the logger
    `tb_bottleneck.monitor`. Only one monitor per process is active; a second monitor only passes the calls of `step`
    and `capture` on to the active one.
    """

    def __init__(
        self,
        logdir: "str | os.PathLike[str]",
        *,
        model: Any = None,
        captures: int = 5,
        every_s: float = PACKET_S,
        memory_snapshots: int = 0,
        revision: str | None = None,
        module_depth: int | None = None,
        sample_workers: bool = True,
        check_machine: bool = False,
    ) -> None:
        self._logdir = logdir
        self._model = model
        self._captures = captures
        self._every_s = every_s
        self._memory_snapshots = memory_snapshots
        self._revision = revision
        self._module_depth = module_depth
        self._sample_workers = bool(sample_workers)
        self._check_machine = bool(check_machine)
        self._session: Session | None = None
        self.directory: str | None = None
        """The run directory, after the start."""
        self.after_step: Callable[[], bool] | None = None
        """A function that is called after each step on the training thread; None for no function. If it made the
        training wait, it returns True, and the time in the function belongs to no step. For `tb-bottleneck try`."""

    def __enter__(self) -> "Monitor":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop("" if kind is None else kind.__name__)

    def start(self) -> None:
        """Starts the monitor. Does nothing if this monitor is already active. Logs a warning and starts nothing if
        another monitor is active, or if the monitor cannot start."""
        global _active
        with _lock:
            if _active is not None:
                if _active is not self:
                    _log.warning(
                        "another Monitor is active in this process, so this one records nothing: stop the other first"
                    )
                return
            try:
                self._begin()
            except Exception as error:  # the training must continue without the monitor
                reason = str(error) if isinstance(error, BottleneckError) else f"{type(error).__name__}: {error}"
                _log.warning("the training is not monitored: %s", reason)
                self._session = None
                return
            _active = self
        atexit.register(self._exit)

    def stop(self) -> None:
        """Writes the remaining data and restores torch. May be called twice."""
        self._stop("")

    def _exit(self) -> None:
        """Stops at the end of the process, which may be due to an unhandled exception."""
        self._stop("", getattr(getattr(sys, "last_type", None), "__name__", ""))

    def _stop(self, error: str, unhandled: str = "") -> None:
        global _active
        with _lock:
            session, self._session = self._session, None
            if session is None:
                return
            if _active is self:
                _active = None
        atexit.unregister(self._exit)
        try:
            session.stop(error)
            session.tell_results(error or unhandled)
            if session.started_too_early:
                _log.warning(
                    "the monitor started before init_process_group, so it did not know the rank: start it afterwards, "
                    "and the ranks are judged as one job"
                )
        except Exception as error:  # as above
            _log.warning("the monitor failed while stopping: %s: %s", type(error).__name__, error)

    def step(self, samples: float | None = None) -> None:
        """Marks the end of a step. From the first call on, only calls of this method end steps. `samples` is the number
        of samples in the step, for loops without a DataLoader; None if unknown."""
        session = self._active_session()
        if session is not None:
            session.step(samples)

    @property
    def steps(self) -> int:
        """The number of finished steps; 0 while this monitor is not active."""
        session = self._session
        return 0 if session is None else session.clock.steps

    @property
    def loader_workers(self) -> int:
        """The number of workers of the DataLoader with the most workers; 0 while this monitor is not active."""
        session = self._session
        return 0 if session is None else session.loader_workers

    def capture(self) -> None:
        """Requests a trace of the next steps."""
        session = self._active_session()
        if session is not None:
            session.capture.request("requested by the training")

    def _begin(self) -> None:
        from pathlib import Path

        if "://" in str(self._logdir):
            raise Unusable(f"{self._logdir} is a URL, but the monitor needs a local directory: pass one")
        every_s = min(max(MIN_INTERVAL_S, float(self._every_s)), MAX_INTERVAL_S)
        logdir = Path(self._logdir).expanduser()
        revision = None if self._revision is None else str(self._revision)
        depth = -1 if self._module_depth is None else int(self._module_depth)
        options = MonitorOptions(
            logdir,
            self._model,
            int(self._captures),
            every_s,
            int(self._memory_snapshots),
            revision,
            depth,
            self._sample_workers,
            self._check_machine,
        )
        session = Session(options, after_step=lambda: self.after_step is not None and self.after_step())
        self.directory = str(session.start())
        self._session = session
        _SESSIONS.add(session)

    def _active_session(self) -> Session | None:
        other = _active
        return self._session or (other._session if other is not None else None)


_SESSIONS: "weakref.WeakSet[Session]" = weakref.WeakSet()


def _in_forked_child() -> None:
    """Disables the monitor in a forked process, such as a loader worker. The process inherits the hooks, but not the
    monitor's thread."""
    global _active, _lock
    _lock = threading.Lock()  # another thread may have held it during the fork
    if _active is not None:
        _active._session = None
        _active = None
    for session in list(_SESSIONS):
        session.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_child)
