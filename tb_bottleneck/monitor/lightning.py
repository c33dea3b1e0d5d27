"""A callback that monitors training with Lightning: `Trainer(callbacks=[MonitorCallback()])`.

The Hugging Face callback has the same class name, because both frameworks call such a class a callback. A user imports
only one of the two classes.
"""

from typing import Any

from tb_bottleneck.monitor.callback import TrainerMonitor

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback


class MonitorCallback(Callback):
    """Monitors `Trainer.fit`. Writes to `logdir`, by default the logger's directory. Steps, waits and evaluation are
    detected as in any other training loop."""

    def __init__(self, logdir: str | None = None, *, captures: int = 5) -> None:
        super().__init__()
        self._logdir = logdir
        self._monitor = TrainerMonitor(captures)

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Starts the monitor, in every process of the training."""
        if stage == "fit":
            self._monitor.begin(str(self._logdir or trainer.log_dir or trainer.default_root_dir), None)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Stops the monitor."""
        if stage == "fit":
            self._monitor.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Stops the monitor after an exception."""
        self._monitor.end()
