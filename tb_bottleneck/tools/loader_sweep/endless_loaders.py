"""Endless loaders for a sweep, from the user's dataset or loader arguments.

A function of the user returns these; it is named `module:function` or `path/to/file.py:function`.
"""

import importlib
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tb_bottleneck.base.errors import NotFound, Unusable
from tb_bottleneck.base.text import one_line as untrusted_line

_MAX_NAMES = 8


def call_factory(factory: str) -> object:
    """Imports and calls a function of the user, and returns its result.

    Adds the file's folder, or the current one, to the front of `sys.path`, so that spawned worker processes can import
    the result's classes. Raises NotFound if there is no such function, and Unusable if the user's code raises.
    """
    source, _, name = factory.rpartition(":")
    if not source or not name:
        raise NotFound(f"{factory!r} does not have the form module:function or file.py:function")
    module = _import_file(Path(source)) if source.endswith(".py") else _import(source, Path.cwd())
    function = getattr(module, name, None)
    if not callable(function):
        raise NotFound(f"{source} has no function {name!r}; {_available_functions(module)}")
    return _run(f"{factory}()", function)


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise NotFound(f"no such file: {path}")
    loaded = sys.modules.get(path.stem)
    if loaded is not None and Path(str(getattr(loaded, "__file__", ""))).resolve() != path.resolve():
        raise NotFound(f"{path} has the name of a module that is already imported, {path.stem!r}: rename the file")
    return _import(path.stem, path.resolve().parent)


def _import(name: str, folder: Path) -> ModuleType:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        return _run(f"importing {name}", lambda: importlib.import_module(name))
    except Unusable as error:
        cause = error.__cause__
        if isinstance(cause, ModuleNotFoundError) and cause.name and f"{name}.".startswith(f"{cause.name}."):
            raise NotFound(f"no module named {cause.name!r} in {folder} and the installed packages") from None
        raise


def _run(what: str, function: Callable[[], ModuleType]) -> ModuleType:
    try:
        return function()
    except Exception as error:  # the user's code may raise anything
        raise Unusable(f"{what} raised {one_line(error)}") from error


def one_line(error: BaseException) -> str:
    """Formats an exception as one line: its class, and its last line that is not empty."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    message = untrusted_line(lines[-1] if lines else "", 300)
    kind = type(error).__name__
    if not message or message.startswith(f"{kind}:"):  # a worker's exception ends with the text of its traceback
        return message or kind
    return f"{kind}: {message}"


def _available_functions(module: ModuleType) -> str:
    names = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
    own = [name for name in names if getattr(getattr(module, name), "__module__", "") == module.__name__]
    return f"it has {', '.join(own[:_MAX_NAMES])}" if own else "it defines none"


# The arguments that select the samples of a batch; a loader with a batch sampler must not have them, too.
_SELECTION = ("batch_size", "shuffle", "sampler", "batch_sampler", "drop_last")
_COPIED = (
    "dataset",
    "collate_fn",
    "timeout",
    "worker_init_fn",
    "multiprocessing_context",
    "generator",
)
_WORKERS_ONLY = ("timeout", "multiprocessing_context", "worker_init_fn")
BATCH_TIMEOUT_S = 120
"""Longest time for one batch, after which the worker counts as stuck."""


@dataclass(frozen=True, order=True)
class LoaderSetting:
    """The loader arguments that a sweep varies, ordered by their cost. `prefetch` is 0 without workers."""

    workers: int
    pinned: bool
    prefetch: int

    def arguments(self) -> dict[str, Any]:
        """Returns the arguments of DataLoader."""
        if not self.workers:
            return {"num_workers": 0, "pin_memory": self.pinned}
        return {"num_workers": self.workers, "pin_memory": self.pinned, "prefetch_factor": self.prefetch}


class EndlessSampler:
    """Repeats the batches (or single indices) of a sampler; `lengths` are the sample counts of pending batches."""

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler
        self._iterator: Iterator[Any] = iter(())
        self.lengths: deque[int] = deque()

    def __iter__(self) -> Iterator[Any]:
        self.lengths.clear()
        while True:
            for indices in self._iterator:
                self.lengths.append(len(indices) if hasattr(indices, "__len__") else 1)
                yield indices
            self._iterator = iter(self._sampler)
            first = next(self._iterator, None)
            if first is None:
                return
            self.lengths.append(len(first) if hasattr(first, "__len__") else 1)
            yield first


class SweepLoaders:
    """Loaders for a factory's result: a dataset, a mapping of DataLoader's arguments, or a DataLoader.

    All loaders of a sweep share one stream of indices, so each setting continues where the last one stopped. Otherwise
    files would be read from the page cache, and later settings would look faster than they are. (An iterable dataset
    has no indices and starts again.)
    """

    def __init__(self, source: object, torch: Any, device: str | None = None) -> None:
        self._torch = torch
        self.device = device
        arguments = _arguments_of(source, torch)
        self.given = _setting_of(arguments)
        """The setting of the source's own arguments, if any."""
        for swept in ("num_workers", "pin_memory", "prefetch_factor", "persistent_workers"):
            arguments.pop(swept, None)
        self._arguments = arguments
        self._stream: EndlessSampler | None = None
        try:
            plain = torch.utils.data.DataLoader(**_without(arguments, _WORKERS_ONLY))
        except (TypeError, ValueError) as error:
            raise Unusable(f"DataLoader does not accept the factory's result: {one_line(error)}") from error
        self._batch_size = plain.batch_size or 1
        if not isinstance(plain.dataset, torch.utils.data.IterableDataset):
            self._arguments = _without(arguments, _SELECTION)
            if plain.batch_sampler is not None:
                self._stream = self._arguments["batch_sampler"] = EndlessSampler(plain.batch_sampler)
            else:
                self._stream = self._arguments["sampler"] = EndlessSampler(plain.sampler)
                self._arguments["batch_size"] = None

    def loader(self, setting: LoaderSetting) -> Any:
        """Returns a DataLoader with this setting. Raises DataLoader's exceptions."""
        arguments = {**self._arguments, **setting.arguments()}
        if not setting.workers:
            arguments = _without(arguments, _WORKERS_ONLY)
        else:
            arguments["timeout"] = arguments.get("timeout") or BATCH_TIMEOUT_S
            arguments["persistent_workers"] = self._stream is None  # an iterable dataset restarts, its workers need not
        return self._torch.utils.data.DataLoader(**arguments)

    def take(self, batch: object, pinned: bool) -> None:
        """Copies the batch's tensors to the device, if any, and waits for them: otherwise a full copy queue would make
        any loader look fast."""
        if self.device is not None:
            _send(batch, pinned, self.device, self._torch.Tensor)
            getattr(self._torch, self.device).synchronize()

    def samples_in(self, batch: object) -> int:
        """Returns the number of samples in the last batch."""
        if self._stream is not None and self._stream.lengths:
            return self._stream.lengths.popleft()
        return self._batch_size


def sweep_loaders(source: object) -> SweepLoaders:
    """Returns the loaders for a factory's result. Raises Unusable, and NotFound if torch is missing."""
    try:
        import torch
    except ImportError as error:
        raise NotFound("torch is not installed in this Python: install it, then sweep again") from error
    device = "cuda" if torch.cuda.is_available() else "xpu" if torch.xpu.is_available() else None
    return SweepLoaders(source, torch, device)


def _arguments_of(source: object, torch: Any) -> dict[str, Any]:
    data = torch.utils.data
    if isinstance(source, data.DataLoader):
        if isinstance(source.dataset, data.IterableDataset):
            selection: tuple[str, ...] = ("batch_size", "drop_last") if source.batch_size else ("batch_size",)
        elif source.batch_sampler is not None:
            selection = ("batch_sampler",)
        else:
            selection = ("batch_size", "sampler")  # single samples without batching
        swept = ("num_workers", "pin_memory", *(("prefetch_factor",) if source.num_workers else ()))
        return {name: getattr(source, name) for name in (*_COPIED, *selection, *swept)}
    if isinstance(source, Mapping):
        if "dataset" not in source:
            raise Unusable("the factory returned a mapping without 'dataset': return DataLoader's arguments by name")
        return dict(source)
    if hasattr(source, "__getitem__") or hasattr(source, "__iter__"):
        return {"dataset": source}
    raise Unusable(
        f"the factory returned {type(source).__name__}, not a Dataset, a DataLoader or a mapping of its arguments"
    )


def _setting_of(arguments: Mapping[str, Any]) -> LoaderSetting | None:
    """Returns the setting in the factory's own arguments, or None if they have none."""
    if "num_workers" not in arguments:
        return None
    workers = int(arguments["num_workers"])
    prefetch = int(arguments.get("prefetch_factor") or 2) if workers else 0  # torch's own default
    return LoaderSetting(workers, bool(arguments.get("pin_memory", False)), prefetch)


def _without(arguments: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name not in names}


def _send(batch: Any, pinned: bool, device: str, tensor: type) -> None:
    if isinstance(batch, tensor):
        batch.to(device, non_blocking=pinned)  # type: ignore[attr-defined]
    elif isinstance(batch, Mapping | list | tuple):
        for part in batch.values() if isinstance(batch, Mapping) else batch:
            _send(part, pinned, device, tensor)
