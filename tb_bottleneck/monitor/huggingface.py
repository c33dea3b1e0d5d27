"""A callback that monitors a training with Hugging Face's Trainer: `Trainer(..., callbacks=[MonitorCallback()])`."""

from typing import Any

from transformers import TrainerCallback

from tb_bottleneck.monitor.callback import TrainerMonitor


class MonitorCallback(TrainerCallback):
    """Monitors `train`, by default where the Trainer logs. Steps, waits and evaluation are told apart as in any
    loop."""

    def __init__(self, logdir: str | None = None, *, captures: int = 3) -> None:
        self._logdir = logdir
        self._owned = TrainerMonitor(captures)

    def on_train_begin(self, args: Any, state: Any, control: Any, **parts: Any) -> None:
        """Begins, in every process of the training."""
        logdir = self._logdir or getattr(args, "logging_dir", None) or args.output_dir
        self._owned.begin(str(logdir), parts.get("model"))

    def on_train_end(self, args: Any, state: Any, control: Any, **parts: Any) -> None:
        """Ends."""
        self._owned.end()
