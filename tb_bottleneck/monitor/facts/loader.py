"""Facts about the training's DataLoader, as opposed to other loaders that are iterated in the same loop.

An evaluation loop without `no_grad` iterates over its loader just as the training does. The step clock knows which
iterators are trained on.
"""

import multiprocessing
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

from tb_bottleneck.monitor.facts.dataset_classes import dataset_classes
from tb_bottleneck.monitor.facts.storage import storage_facts

PREFETCHED_BY_DEFAULT = 2
MAX_LOADERS = 8

Facts = Mapping[str, object]


class LoaderFacts:
    """Collects the facts of each loader once. For the training thread, except `facts`."""

    def __init__(self) -> None:
        self.fetched_ahead = 0
        """Number of batches that the training's loader prefetches."""
        self._by_loader: dict[int, tuple[weakref.ref[Any], Facts]] = {}
        self._by_iterator: dict[int, Facts] = {}
        self._last_trained: Facts = {}  # of a deleted iterator that was trained on

    def add_iterator(self, loader: Any, iterator: int, replaces_trained: bool = False) -> None:
        """Adds an iterator, given by its id, of a loader. May raise what the user's loader class raises.

        `replaces_trained`: the id belonged to a deleted iterator that was trained on.
        """
        if replaces_trained:
            self._last_trained = self._by_iterator.get(iterator, self._last_trained)
        reference, facts = self._by_loader.get(id(loader), (None, {}))
        if reference is None or reference() is not loader:  # Python reuses the ids of deleted objects
            facts = loader_facts(loader)
            _keep(self._by_loader, id(loader), (weakref.ref(loader), facts))
            self.fetched_ahead = max(self.fetched_ahead, _fetched_ahead(loader))
        _keep(self._by_iterator, iterator, facts)

    def facts(self, trained_iterators: Iterable[int]) -> Facts:
        """Returns the facts of the last known iterator in `trained_iterators`; else of the newest one. For any
        thread."""
        by_iterator = dict(self._by_iterator)
        trained = [by_iterator[iterator] for iterator in trained_iterators if iterator in by_iterator]
        return (trained or [self._last_trained])[-1] or next(reversed(list(by_iterator.values())), {})


def _keep(entries: dict[int, Any], key: int, value: Any) -> None:
    """Adds an entry as the newest, and deletes the oldest beyond MAX_LOADERS."""
    entries.pop(key, None)
    entries[key] = value
    if len(entries) > MAX_LOADERS:
        del entries[next(iter(entries))]


def loader_facts(loader: Any) -> dict[str, object]:
    """Returns the configuration of a torch DataLoader."""
    facts = {
        "workers": int(loader.num_workers),
        "pin_memory": bool(loader.pin_memory),
        "prefetch_factor": loader.prefetch_factor,
        "persistent_workers": bool(loader.persistent_workers),
        "batch_size": loader.batch_size if loader.batch_size is not None else _batch_size(loader),
        "loader_classes": None if loader.num_workers else dataset_classes(loader.dataset),
        "worker_start": _start_method(loader) if loader.num_workers else None,
        **storage_facts(loader.dataset),
    }
    return {name: value for name, value in facts.items() if value is not None}


def _start_method(loader: Any) -> str:
    """Returns the start method of its workers: its own, the program's, or the platform's default, which comes first."""
    context = loader.multiprocessing_context
    chosen = multiprocessing.get_start_method(allow_none=True) if context is None else context.get_start_method()
    return str(chosen or multiprocessing.get_all_start_methods()[0])


def _batch_size(loader: Any) -> int | None:
    size = getattr(loader.batch_sampler, "batch_size", None)
    return size if isinstance(size, int) else None


def _fetched_ahead(loader: Any) -> int:
    return int(loader.num_workers) * int(loader.prefetch_factor or PREFETCHED_BY_DEFAULT)
