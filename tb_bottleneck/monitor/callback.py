"""A monitor that a trainer's callback begins and ends."""

from typing import Any, ClassVar

from tb_bottleneck.monitor.monitor import Monitor


class TrainerMonitor:
    """Begins with a training and ends with it, or with the next one: a training that failed may not say that it
    ended."""

    _at_work: ClassVar["TrainerMonitor | None"] = None

    def __init__(self, captures: int = 3) -> None:
        self._captures = captures
        self._monitor: Monitor | None = None

    def begin(self, logdir: str, model: Any) -> None:
        """A training begins."""
        if TrainerMonitor._at_work is not None:
            TrainerMonitor._at_work.end()
        self._monitor = Monitor(logdir, model=model, captures=self._captures)
        self._monitor.start()
        TrainerMonitor._at_work = self

    def end(self) -> None:
        """The training is over. It may be called twice."""
        if self._monitor is not None:
            self._monitor.stop()
            self._monitor = None
        if TrainerMonitor._at_work is self:
            TrainerMonitor._at_work = None

    def __getstate__(self) -> dict[str, Any]:
        """Trainers copy and pickle their callbacks; a monitor at work stays where it is."""
        return {"_captures": self._captures, "_monitor": None}
