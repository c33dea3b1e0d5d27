"""Facts about the loader that the training takes its batches from, told from others that are iterated beside it.

A loop that forgets `no_grad` iterates over its evaluation's loader as it does over the training's. Which iterator is
trained on is the clock's to say.
"""

import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PREFETCHED_BY_DEFAULT = 2
MOST_KEPT = 8

Facts = Mapping[str, object]


class LoaderFacts:
    """Looks at each loader once. Called on the training thread, but for `facts`, which any may call."""

    def __init__(self) -> None:
        self.fetched_ahead = 0
        """Batches that the training's loader prepares ahead of their use."""
        self._looked_at: dict[int, tuple[weakref.ref[Any], Facts]] = {}
        self._of_iterator: dict[int, Facts] = {}
        self._trained_on: Facts = {}  # the last whose number was given again

    def look(self, loader: Any, iterator: int, takes_over: bool = False) -> None:
        """A loader gave this iterator; `takes_over` where its number was that of one that was trained on. It may raise,
        because a user's loader may answer in any way."""
        if takes_over:
            self._trained_on = self._of_iterator.get(iterator, self._trained_on)
        gone, facts = self._looked_at.get(id(loader), (None, {}))
        if gone is None or gone() is not loader:  # a number is given again, to another object
            facts = loader_facts(loader)
            _keep(self._looked_at, id(loader), (weakref.ref(loader), facts))
            self.fetched_ahead = max(self.fetched_ahead, _fetched_ahead(loader))
        _keep(self._of_iterator, iterator, facts)

    def facts(self, trained_on: Iterable[int]) -> Facts:
        """Of the iterator that was trained on, the last one that is known; of the newest where none was yet."""
        known = dict(self._of_iterator)
        found = [known[one] for one in trained_on if one in known] or [self._trained_on]
        return found[-1] or next(reversed(list(known.values())), {})


def _keep(kept: dict[int, Any], key: int, value: Any) -> None:
    """As the newest; the oldest goes where there are too many."""
    kept.pop(key, None)
    kept[key] = value
    if len(kept) > MOST_KEPT:
        del kept[next(iter(kept))]


def loader_facts(loader: Any) -> dict[str, object]:
    """How a torch DataLoader is set up."""
    context = loader.multiprocessing_context
    facts = {
        "workers": int(loader.num_workers),
        "pin_memory": bool(loader.pin_memory),
        "prefetch_factor": loader.prefetch_factor,
        "persistent_workers": bool(loader.persistent_workers),
        "batch_size": loader.batch_size if loader.batch_size is not None else _batch_size(loader),
        "worker_start": None if context is None else str(context.get_start_method()),
        "dataset_filesystem": _filesystem(loader.dataset),
    }
    return {name: value for name, value in facts.items() if value is not None}


def _batch_size(loader: Any) -> int | None:
    size = getattr(loader.batch_sampler, "batch_size", None)
    return size if isinstance(size, int) else None


def _fetched_ahead(loader: Any) -> int:
    return int(loader.num_workers) * int(loader.prefetch_factor or PREFETCHED_BY_DEFAULT)


def _filesystem(dataset: Any) -> str | None:
    """The type of file system under a data set that says where it lies, such as `ext4` or `nfs4`; never the path."""
    root = next((found for name in ("root", "data_dir", "path") if (found := getattr(dataset, name, None))), None)
    if not isinstance(root, str | Path):
        return None
    try:
        lines = Path("/proc/self/mounts").read_text().splitlines()
        place = Path(root).resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    mounts = [line.split(" ")[1:3] for line in lines]
    holding = [(len(Path(point).parts), kind) for point, kind in mounts if place.is_relative_to(point)]
    return max(holding, default=(0, None))[1]
