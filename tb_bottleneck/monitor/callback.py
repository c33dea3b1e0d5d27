"""A monitor that the callback of a trainer framework starts and stops."""

from typing import Any, ClassVar

from tb_bottleneck.monitor.monitor import Monitor


class TrainerMonitor:
    """A monitor that runs from the start of a training to its end.

    A failed training may not report its end. In this case, the monitor runs until the next training starts."""

    _active: ClassVar["TrainerMonitor | None"] = None

    def __init__(self, captures: int = 5) -> None:
        self._captures = captures
        self._monitor: Monitor | None = None

    def begin(self, logdir: str, model: Any) -> None:
        """Stops the monitor of an earlier training, and starts a monitor that writes to `logdir`. `model` is the
        argument of Monitor, or None."""
        if TrainerMonitor._active is not None:
            TrainerMonitor._active.end()
        self._monitor = Monitor(logdir, model=model, captures=self._captures)
        self._monitor.start()
        TrainerMonitor._active = self

    def end(self) -> None:
        """Stops the monitor. May be called twice."""
        if self._monitor is not None:
            self._monitor.stop()
            self._monitor = None
        if TrainerMonitor._active is self:
            TrainerMonitor._active = None

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state without the running monitor, because trainers copy and pickle their callbacks."""
        return {"_captures": self._captures, "_monitor": None}
