"""Times waits for batches: `__iter__` of torch's DataLoader and `__next__` of its iterators.

Only methods are replaced, so loaders and iterators keep their types and can be pickled as before.
"""

import functools
from collections.abc import Callable
from typing import Any

from tb_bottleneck.monitor.hooks.hook_context import HookContext
from tb_bottleneck.monitor.steps.device_timing import batch_samples
from tb_bottleneck.monitor.torch_internals import loader_iterator_class, makes_batches_in_workers
from tb_bottleneck.monitor.workers.loader_stacks import SAMPLES

SIGNAL, EPOCH_START = "loader_wait", "epoch_start"
MAX_STARTED = 8


def install(context: HookContext) -> None:
    """Replaces `__iter__` of DataLoader and `__next__` of its iterators by methods that time the calls."""
    import torch
    from torch.utils.data import DataLoader

    hooks = _LoaderHooks(context, torch.is_grad_enabled)
    context.patches.replace(DataLoader, "__iter__", hooks.around_iter)
    context.patches.replace(loader_iterator_class(), "__next__", hooks.around_next)


class _LoaderHooks:
    def __init__(self, context: HookContext, gradients: Callable[[], bool]) -> None:
        self._context = context
        self._gradients = gradients
        self._inside = False
        self._started: dict[int, int] = {}
        """A dict: id of an iterator that gave no batch yet -> time in ns when its creation began. At most MAX_STARTED
        iterators are kept, the newest."""

    def around_iter(self, original: Any) -> Any:
        """Returns `DataLoader.__iter__` with timing. The call may start worker processes, which counts as a wait."""

        @functools.wraps(original)
        def __iter__(loader: Any) -> Any:
            if self._inside or not self._context.is_active(SIGNAL):
                return original(loader)
            context = self._context
            began = context.clock.now()
            self._begin(loader)
            stacks = context.stacks
            restore = context.guard.call(SAMPLES, stacks.attach, loader) if stacks is not None else None
            try:
                iterator = original(loader)
            finally:
                if restore is not None:
                    context.guard.call("worker_init_fn", restore)  # even if the signal failed meanwhile
                self._end(context.clock.fetch_fails, loader)
            self._started[id(iterator)] = began
            if len(self._started) > MAX_STARTED:
                del self._started[next(iter(self._started))]
            replaces_trained = bool(context.guard.call(SIGNAL, context.clock.iterator_begins, id(iterator)))
            if self._gradients():
                context.guard.call(
                    "facts of the loader", context.loaders.add_iterator, loader, id(iterator), replaces_trained
                )
            return iterator

        return __iter__

    def around_next(self, original: Any) -> Any:
        """Returns `__next__` of a DataLoader's iterators with timing."""

        @functools.wraps(original)
        def __next__(iterator: Any) -> Any:
            if self._inside or not self._context.is_active(SIGNAL):
                return original(iterator)
            self._begin(iterator)
            try:
                batch = original(iterator)
            except BaseException:
                self._end(self._context.clock.fetch_fails, iterator)
                raise
            self._end(self._fetched, iterator, batch)
            if self._context.stacks is not None and makes_batches_in_workers(iterator):
                self._context.stacks.batches += 1
            return batch

        return __next__

    def _begin(self, source: Any) -> None:
        # If the data set of a loader is itself a loader, only the outer call counts.
        self._inside = True
        self._context.guard.call(SIGNAL, self._context.clock.fetch_begins, id(source))

    def _end(self, report: Callable[..., None], source: Any, *batch: Any) -> None:
        self._inside = False
        self._context.guard.call(SIGNAL, report, id(source), *batch, self._gradients())

    def _fetched(self, iterator: int, batch: Any, for_training: bool) -> None:
        clock = self._context.clock
        clock.fetch_ends(iterator, batch_samples(batch), for_training)
        began = self._started.pop(iterator, None)
        if began is not None and for_training and not clock.fetched_elsewhere:
            clock.add(EPOCH_START, clock.now() - began)
        if for_training and not clock.step_has_backward:
            self._context.spans.begin()
