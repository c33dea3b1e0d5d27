"""Times the waits for batches: `__iter__` of torch's DataLoader and `__next__` of the iterators it makes.

Only methods are replaced, so loaders and iterators keep their types, and can be pickled as before.
"""

import functools
from collections.abc import Callable
from typing import Any

from tb_bottleneck.monitor.hooks.hook_context import HookContext
from tb_bottleneck.monitor.steps.batch_size import batch_samples

SIGNAL = "loader_wait"


def install(at: HookContext) -> None:
    """Replaces the methods."""
    import torch
    from torch.utils.data import DataLoader
    from torch.utils.data import dataloader as module

    waits = _Waits(at, torch.is_grad_enabled)
    at.patches.replace(DataLoader, "__iter__", waits.around_iter)
    at.patches.replace(module._BaseDataLoaderIter, "__next__", waits.around_next)


class _Waits:
    def __init__(self, at: HookContext, gradients: Callable[[], bool]) -> None:
        self._at = at
        self._gradients = gradients
        self._inside = False

    def around_iter(self, original: Any) -> Any:
        """`DataLoader.__iter__` may start the worker processes: that too is a wait."""

        @functools.wraps(original)
        def __iter__(loader: Any) -> Any:
            if self._inside or not self._at.listens(SIGNAL):
                return original(loader)
            self._begin(loader)
            try:
                iterator = original(loader)
            finally:
                self._end(self._at.clock.fetch_fails, loader)
            takes_over = bool(self._at.guard.call(SIGNAL, self._at.clock.iterator_begins, id(iterator)))
            if self._gradients():
                self._at.guard.call("facts of the loader", self._at.loaders.look, loader, id(iterator), takes_over)
            return iterator

        return __iter__

    def around_next(self, original: Any) -> Any:
        @functools.wraps(original)
        def __next__(iterator: Any) -> Any:
            if self._inside or not self._at.listens(SIGNAL):
                return original(iterator)
            self._begin(iterator)
            try:
                batch = original(iterator)
            except BaseException:
                self._end(self._at.clock.fetch_fails, iterator)
                raise
            self._end(self._fetched, iterator, batch)
            return batch

        return __next__

    def _begin(self, source: Any) -> None:
        # A loader whose data set is itself a loader counts once.
        self._inside = True
        self._at.guard.call(SIGNAL, self._at.clock.fetch_begins, id(source))

    def _end(self, tell: Callable[..., None], source: Any, *batch: Any) -> None:
        self._inside = False
        self._at.guard.call(SIGNAL, tell, id(source), *batch, self._gradients())

    def _fetched(self, source: int, batch: Any, for_training: bool) -> None:
        self._at.clock.fetch_ends(source, batch_samples(batch), for_training)
        if for_training and not self._at.clock.trained:
            self._at.spans.begin()
