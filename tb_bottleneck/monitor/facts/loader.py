"""Facts about the training's DataLoader, and about the classes in its data set."""

import multiprocessing
import weakref
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType
from typing import Any

from tb_bottleneck.monitor.facts.storage import storage_facts
from tb_bottleneck.monitor.workers.stack_sampler import below_import_path

METHODS = (
    "__call__",
    "forward",
    "transform",
    "_transform",
    "apply",
    "__getitem__",
    "__getitems__",
    "__iter__",
    "__next__",
)
MAX_OBJECTS, MAX_ENTRIES, MAX_DEPTH, MAX_NAME = 64, 64, 5, 120
"""Limits of the search for classes: number of objects, entries of a list or dictionary (a longer one, such as the list
of all samples, is not searched), depth of the search, and characters of a name (longer ones are left out)."""


def dataset_classes(dataset: Any) -> dict[str, str]:
    """Returns a dict: function name as the profiler writes it -> "Class.method". It has the methods in METHODS of
    `dataset` and of the objects in `dataset`, such as transforms.

    The profiler names a method without its class: for example, all transforms of a data set are named `__call__`. The
    dict is needed only for functions that run in the training process. In workers, the stack sampler writes the names
    of classes itself.

    Attributes are read from the objects' `__dict__`, so that no property of the program runs."""
    found: dict[str, str] = {}
    for one in _objects(dataset):
        for kind in type(one).__mro__:
            for method in METHODS:
                function = vars(kind).get(method)
                if isinstance(function, FunctionType) and "torch/nn/modules/" not in function.__code__.co_filename:
                    code = function.__code__
                    frame = f"{below_import_path(code.co_filename)}({code.co_firstlineno}): {code.co_name}"
                    name = function.__qualname__.replace("<locals>.", "")
                    if len(frame) <= MAX_NAME >= len(name):
                        found.setdefault(frame, name)
    return found


def _objects(dataset: Any) -> Iterator[Any]:
    """Yields the data set and the objects in its attributes, each object once. Stops at a depth of MAX_DEPTH and after
    MAX_OBJECTS objects."""
    level, seen = [dataset], set[int]()
    for _ in range(MAX_DEPTH):
        following: list[Any] = []
        for one in level:
            if id(one) in seen or len(seen) >= MAX_OBJECTS:
                continue
            seen.add(id(one))
            yield one
            for value in list(vars(one).values()):
                entries = _entries(value)
                following += [entry for entry in entries if isinstance(getattr(entry, "__dict__", None), dict)]
        level = following


def _entries(value: Any) -> list[Any]:
    if type(value) in (list, tuple) and len(value) <= MAX_ENTRIES:
        return list(value)
    if type(value) is dict and len(value) <= MAX_ENTRIES:
        return list(value.values())
    return [value]


PREFETCHED_BY_DEFAULT = 2
MAX_LOADERS = 8

Facts = Mapping[str, object]


class LoaderFacts:
    """Collects facts about each DataLoader once. All methods except `facts` are for the training thread.

    The loaders may include loaders that are not trained on: an evaluation loop without `no_grad` iterates over its
    loader just as the training does. The StepClock knows which iterators are trained on; `facts` gets their ids."""

    def __init__(self) -> None:
        self.fetched_ahead = 0
        """Number of batches that a loader prefetches; the largest number of all loaders."""
        self.workers = 0
        """Number of workers of the loader with the most workers."""
        self._by_loader: dict[int, tuple[weakref.ref[Any], Facts]] = {}
        self._by_iterator: dict[int, Facts] = {}
        self._last_trained: Facts = {}  # facts about the loader of a deleted iterator that was trained on

    def add_iterator(self, loader: Any, iterator: int, replaces_trained: bool = False) -> None:
        """Adds the iterator of `loader` that has the id `iterator`. May raise what the user's loader class raises.

        `replaces_trained` is True if the same id belonged to a deleted iterator whose batches were trained on."""
        if replaces_trained:
            self._last_trained = self._by_iterator.get(iterator, self._last_trained)
        reference, facts = self._by_loader.get(id(loader), (None, {}))
        if reference is None or reference() is not loader:  # Python reuses the ids of deleted objects
            facts = loader_facts(loader)
            _keep(self._by_loader, id(loader), (weakref.ref(loader), facts))
            self.fetched_ahead = max(self.fetched_ahead, _fetched_ahead(loader))
            self.workers = max(self.workers, int(loader.num_workers))
        _keep(self._by_iterator, iterator, facts)

    def facts(self, trained_iterators: Iterable[int]) -> Facts:
        """Returns the facts about the loader of the training. Any thread may call this.

        This is the loader of the last known iterator in `trained_iterators` (ids of iterators that were trained on).
        Without one, it is the loader of the last deleted iterator that was trained on, otherwise that of the newest
        iterator. The result is {} if there is no iterator."""
        by_iterator = dict(self._by_iterator)
        trained = [by_iterator[iterator] for iterator in trained_iterators if iterator in by_iterator]
        return (trained or [self._last_trained])[-1] or next(reversed(list(by_iterator.values())), {})


def _keep(entries: dict[int, Any], key: int, value: Any) -> None:
    """Adds `value` under `key` as the newest entry. Deletes the oldest entry if there are more than MAX_LOADERS."""
    entries.pop(key, None)
    entries[key] = value
    if len(entries) > MAX_LOADERS:
        del entries[next(iter(entries))]


def loader_facts(loader: Any) -> dict[str, object]:
    """Returns the configuration of a torch DataLoader as a dict: name of the fact -> value. Values that are None are
    left out."""
    facts = {
        "workers": int(loader.num_workers),
        "pin_memory": bool(loader.pin_memory),
        "prefetch_factor": loader.prefetch_factor,
        "persistent_workers": bool(loader.persistent_workers),
        "batch_size": loader.batch_size if loader.batch_size is not None else _batch_size(loader),
        "epoch_batches": _epoch_batches(loader),
        "loader_classes": None if loader.num_workers else dataset_classes(loader.dataset),
        "worker_start": _start_method(loader) if loader.num_workers else None,
        **storage_facts(loader.dataset),
    }
    return {name: value for name, value in facts.items() if value is not None}


def _start_method(loader: Any) -> str:
    """Returns the name of the method that starts the loader's workers, such as "fork": the method set in the loader,
    otherwise the method set by the program, otherwise the platform's default."""
    context = loader.multiprocessing_context
    chosen = multiprocessing.get_start_method(allow_none=True) if context is None else context.get_start_method()
    return str(chosen or multiprocessing.get_all_start_methods()[0])


def _batch_size(loader: Any) -> int | None:
    size = getattr(loader.batch_sampler, "batch_size", None)
    return size if isinstance(size, int) else None


def _epoch_batches(loader: Any) -> int | None:
    """Returns the number of batches of an epoch; None if the data set or the sampler has no length."""
    try:
        return len(loader)
    except Exception:  # of the user's data set or sampler, which may raise anything; other facts do not need it
        return None


def _fetched_ahead(loader: Any) -> int:
    return int(loader.num_workers) * int(loader.prefetch_factor or PREFETCHED_BY_DEFAULT)
