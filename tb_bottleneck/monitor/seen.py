"""Facts about the objects that the training works with: its loader, its optimizers, its model.

Only settings, counts and the names of torch's own classes are kept; what the user's classes are called is their
business.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PREFETCHED_BY_DEFAULT = 2
MOST_LOOKED_AT = 8


class Seen:
    """Collects facts from the first few objects of each kind, once each. Called on the training thread."""

    def __init__(self) -> None:
        self.facts: dict[str, object] = {}
        self.fetched_ahead = 0
        """Batches that the training's loader prepares ahead of their use."""
        self._known: set[tuple[str, int]] = set()

    def look(self, kind: str, one: Any) -> bool:
        """Whether the object was new. It may raise, because a user's object may answer in any way."""
        if (kind, id(one)) in self._known or len(self._known) >= MOST_LOOKED_AT:
            return False
        self._known.add((kind, id(one)))
        if kind == "loader":
            self.facts |= loader_facts(one)
            self.fetched_ahead = max(self.fetched_ahead, _fetched_ahead(one))
        elif kind == "optimizer":
            self.facts |= optimizer_facts(one)
        elif kind == "model":
            self.facts |= model_facts(one)
        return True


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


def optimizer_facts(optimizer: Any) -> dict[str, object]:
    """Which of torch's optimizers it is, how it runs, and what it holds. Counts are of parameters, not of tensors."""
    defaults = optimizer.defaults
    sizes: Counter[str] = Counter()
    for parameter in (one for group in optimizer.param_groups for one in group["params"]):
        sizes[str(parameter.dtype).removeprefix("torch.")] += parameter.numel()
    facts: dict[str, object] = {"parameters_by_dtype": dict(sizes)}
    # A class of the user's own is named after the torch class that it comes from.
    names = [one.__name__ for one in type(optimizer).__mro__ if one.__module__.startswith("torch.optim")]
    if names:
        facts["optimizer"] = names[0]
    return facts | {name: bool(defaults[name]) for name in ("foreach", "fused") if defaults.get(name) is not None}


def model_facts(model: Any) -> dict[str, object]:
    """What wraps the model: torch's own wrappers only, outermost first."""
    return {"model_wrappers": list(_wrappers(model))}


def _wrappers(model: Any) -> Iterator[str]:
    for _ in range(MOST_LOOKED_AT):
        kind = type(model)
        inner = getattr(model, "module", None) or getattr(model, "_orig_mod", None)
        if inner is None or not kind.__module__.startswith("torch."):
            break
        yield kind.__name__
        model = inner
    if getattr(model, "_compiled_call_impl", None) is not None:
        yield "compile"


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
