"""A callback that monitors a training with Lightning: `Trainer(callbacks=[MonitorCallback()])`."""

from typing import Any

from tb_bottleneck.monitor.callback import TrainerMonitor

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback


class MonitorCallback(Callback):
    """Monitors `fit`, by default in the logger's directory. Steps, waits and evaluation are told apart as in any
    loop."""

    def __init__(self, logdir: str | None = None, *, captures: int = 3) -> None:
        super().__init__()
        self._logdir = logdir
        self._owned = TrainerMonitor(captures)

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Begins, in every process of the training."""
        if stage == "fit":
            self._owned.begin(str(self._logdir or trainer.log_dir or trainer.default_root_dir), None)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Ends."""
        if stage == "fit":
            self._owned.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Ends too."""
        self._owned.end()
