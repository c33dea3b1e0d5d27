"""Times what interrupts a training: checkpoints, log writes (TensorBoard, W&B, MLflow), and garbage collections.

Some of the timed functions, such as `torch.save`, are attributes of modules. A program that imported such a function by
name before the monitor began calls the original function, which is not timed. The times are therefore lower bounds.
Garbage collections of the youngest generation take microseconds and are left out.
"""

import functools
import gc
import sys
from collections.abc import Callable
from typing import Any

from tb_bottleneck.monitor.hooks.hook_context import HookContext

CHECKPOINT, LOGGING, COLLECTION = "checkpoint", "logging", "garbage_collection"
SIGNALS = (CHECKPOINT, LOGGING, COLLECTION)

_MLFLOW = (
    "log_metric",
    "log_metrics",
    "log_param",
    "log_params",
    "log_artifact",
    "log_artifacts",
    "log_figure",
    "log_image",
    "log_text",
    "log_dict",
)
_WRITES = (
    "add_scalar",
    "add_scalars",
    "add_histogram",
    "add_image",
    "add_images",
    "add_figure",
    "add_video",
    "add_text",
    "add_embedding",
    "flush",
)
# (module, class in the module or "", names of functions, signal). A module that is not imported is tried again later.
_CALLS: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("torch", "", ("save",), CHECKPOINT),
    ("torch.distributed.checkpoint", "", ("save", "async_save"), CHECKPOINT),
    ("torch.utils.tensorboard.writer", "SummaryWriter", _WRITES, LOGGING),
    # `wandb.init` sets `wandb.log` to a bound method of its run.
    ("wandb.sdk.wandb_run", "Run", ("log",), LOGGING),
    ("wandb", "", ("log",), LOGGING),
    ("mlflow", "", _MLFLOW, LOGGING),
)


class InterruptionHooks:
    """Times the calls that interrupt a training, such as torch.save and those of loggers, and the garbage collector:
    replaces the functions and registers a callback. Used on the training thread only."""

    def __init__(self, context: HookContext) -> None:
        self._context = context
        self._waiting = list(_CALLS)
        self._inside = False
        self._collection_began: int | None = None

    def install(self) -> Callable[[], None]:
        """Replaces the functions of all modules that are imported now, and registers the callback of the garbage
        collector. Returns a function that removes this callback."""
        for signal in SIGNALS:
            self._context.clock.add(signal, 0.0)  # from now on, a step without such a call has the time 0
        self.install_imported()
        gc.callbacks.append(self._on_collection)
        return self._remove

    def install_imported(self) -> None:
        """Replaces the functions of those modules that the program has imported since the last call of this method."""
        for entry in list(self._waiting):
            module, kind, names, signal = entry
            owner = sys.modules.get(module)
            if owner is None:
                continue
            self._waiting.remove(entry)
            owner = getattr(owner, kind, None) if kind else owner
            for name in names if owner is not None else ():
                if hasattr(owner, name):
                    self._context.patches.replace(owner, name, functools.partial(self._timed, signal))

    def _timed(self, signal: str, original: Any) -> Any:
        @functools.wraps(original)
        def call(*arguments: Any, **options: Any) -> Any:
            if self._inside or not self._context.is_active(signal):
                return original(*arguments, **options)
            self._inside = True
            began = self._context.clock.now()
            try:
                return original(*arguments, **options)
            finally:
                self._inside = False
                self._context.guard.call(signal, self._context.clock.add_time_since, signal, began)

        return call

    def _on_collection(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] == 0 or self._inside or not self._context.is_active(COLLECTION):
            return
        if phase == "start":
            self._collection_began = self._context.clock.now()
        elif self._collection_began is not None:
            began, self._collection_began = self._collection_began, None
            self._context.guard.call(COLLECTION, self._context.clock.add_time_since, COLLECTION, began)

    def _remove(self) -> None:
        if self._on_collection in gc.callbacks:
            gc.callbacks.remove(self._on_collection)
