"""A callback that monitors training with Hugging Face's Trainer: `Trainer(..., callbacks=[MonitorCallback()])`.

The Lightning callback has the same class name, because both frameworks call such a class a callback. A user imports
only one of the two classes.
"""

from typing import Any

from transformers import TrainerCallback

from tb_bottleneck.monitor.callback import TrainerMonitor


class MonitorCallback(TrainerCallback):
    """Monitors `Trainer.train`. Writes to `logdir`, by default the Trainer's log directory. Steps, waits and evaluation
    are detected as in any other training loop."""

    def __init__(self, logdir: str | None = None, *, captures: int = 5) -> None:
        self._logdir = logdir
        self._monitor = TrainerMonitor(captures)

    def on_train_begin(self, args: Any, state: Any, control: Any, **parts: Any) -> None:
        """Starts the monitor, in every process of the training."""
        logdir = self._logdir or getattr(args, "logging_dir", None) or args.output_dir
        self._monitor.begin(str(logdir), parts.get("model"))

    def on_train_end(self, args: Any, state: Any, control: Any, **parts: Any) -> None:
        """Stops the monitor."""
        self._monitor.end()
