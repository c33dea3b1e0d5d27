"""What a sweep feeds from: the user's dataset or loader arguments, made into loaders that never come to an end.

One stream of indices is shared by all loaders of a sweep, so that each setting reads on where the one before stopped:
read again, a file would come from memory, and later settings would look better than they are. (A dataset that is
iterated has no indices; it is begun anew.)
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tb_bottleneck.errors import NotFound, Unusable
from tb_bottleneck.tools.loader_sweep.user_factory import one_line

# What decides which samples make a batch; the loader that is given a stream of batches must not have it too.
_CHOOSING = ("batch_size", "shuffle", "sampler", "batch_sampler", "drop_last")
_TAKEN_OVER = (
    "dataset",
    "collate_fn",
    "timeout",
    "worker_init_fn",
    "multiprocessing_context",
    "generator",
)
_WORKERS_ONLY = ("timeout", "multiprocessing_context", "worker_init_fn")
PATIENCE_S = 120
"""For one batch of a worker, after which the worker is taken to be stuck."""


@dataclass(frozen=True, order=True)
class LoaderSetting:
    """Loader arguments that a sweep varies, in the order of what they cost. `prefetch` is 0 without workers."""

    workers: int
    pinned: bool
    prefetch: int

    def arguments(self) -> dict[str, Any]:
        """As DataLoader takes them."""
        if not self.workers:
            return {"num_workers": 0, "pin_memory": self.pinned}
        return {"num_workers": self.workers, "pin_memory": self.pinned, "prefetch_factor": self.prefetch}


class EndlessSampler:
    """Batches (or single indices) of a sampler, over and over; remembers how many samples are in those under way."""

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler
        self._iterator: Iterator[Any] = iter(())
        self.lengths: deque[int] = deque()

    def __iter__(self) -> Iterator[Any]:
        self.lengths.clear()
        while True:
            for one in self._iterator:
                self.lengths.append(len(one) if hasattr(one, "__len__") else 1)
                yield one
            self._iterator = iter(self._sampler)
            first = next(self._iterator, None)
            if first is None:
                return
            self.lengths.append(len(first) if hasattr(first, "__len__") else 1)
            yield first


class SweepLoaders:
    """Loaders over what a factory gave: a dataset, a mapping of DataLoader's arguments, or a DataLoader."""

    def __init__(self, given: object, torch: Any, device: str | None = None) -> None:
        self._torch = torch
        self.device = device
        arguments = _arguments_of(given, torch)
        self.given = _setting_of(arguments)
        for swept in ("num_workers", "pin_memory", "prefetch_factor", "persistent_workers"):
            arguments.pop(swept, None)
        self._arguments = arguments
        self._stream: EndlessSampler | None = None
        try:
            plain = torch.utils.data.DataLoader(**_without(arguments, _WORKERS_ONLY))
        except (TypeError, ValueError) as error:
            raise Unusable(f"DataLoader does not take what the factory gave: {one_line(error)}") from error
        self._batch_size = plain.batch_size or 1
        if not isinstance(plain.dataset, torch.utils.data.IterableDataset):
            self._arguments = _without(arguments, _CHOOSING)
            if plain.batch_sampler is not None:
                self._stream = self._arguments["batch_sampler"] = EndlessSampler(plain.batch_sampler)
            else:
                self._stream = self._arguments["sampler"] = EndlessSampler(plain.sampler)
                self._arguments["batch_size"] = None

    def loader(self, setting: LoaderSetting) -> Any:
        """A DataLoader under this setting. Raises what DataLoader raises."""
        arguments = {**self._arguments, **setting.arguments()}
        if not setting.workers:
            arguments = _without(arguments, _WORKERS_ONLY)
        else:
            arguments["timeout"] = arguments.get("timeout") or PATIENCE_S
            arguments["persistent_workers"] = self._stream is None  # what is iterated begins anew, its workers need not
        return self._torch.utils.data.DataLoader(**arguments)

    def take(self, batch: object, pinned: bool) -> None:
        """Sends the batch's tensors to the device, where there is one, and waits until they are there: copies that
        only queue up would make any loader look as fast as the queue."""
        if self.device is not None:
            _send(batch, pinned, self.device, self._torch.Tensor)
            getattr(self._torch, self.device).synchronize()

    def samples_in(self, batch: object) -> int:
        """How many samples the batch holds that was taken just now."""
        if self._stream is not None and self._stream.lengths:
            return self._stream.lengths.popleft()
        return self._batch_size


def sweep_loaders(given: object) -> SweepLoaders:
    """Raises Unusable, and NotFound where there is no torch."""
    try:
        import torch
    except ImportError as error:
        raise NotFound("torch was not found in this Python's packages: install it, then sweep again") from error
    device = "cuda" if torch.cuda.is_available() else "xpu" if torch.xpu.is_available() else None
    return SweepLoaders(given, torch, device)


def _arguments_of(given: object, torch: Any) -> dict[str, Any]:
    data = torch.utils.data
    if isinstance(given, data.DataLoader):
        if isinstance(given.dataset, data.IterableDataset):
            choosing: tuple[str, ...] = ("batch_size", "drop_last") if given.batch_size else ("batch_size",)
        elif given.batch_sampler is not None:
            choosing = ("batch_sampler",)
        else:
            choosing = ("batch_size", "sampler")  # samples come as they are, one by one
        swept = ("num_workers", "pin_memory", *(("prefetch_factor",) if given.num_workers else ()))
        return {name: getattr(given, name) for name in (*_TAKEN_OVER, *choosing, *swept)}
    if isinstance(given, Mapping):
        if "dataset" not in given:
            raise Unusable("the factory gave a mapping without 'dataset': give DataLoader's arguments by name")
        return dict(given)
    if hasattr(given, "__getitem__") or hasattr(given, "__iter__"):
        return {"dataset": given}
    raise Unusable(
        f"the factory gave {type(given).__name__}, which is no Dataset, no DataLoader and no mapping of its arguments"
    )


def _setting_of(arguments: Mapping[str, Any]) -> LoaderSetting | None:
    """The setting that the factory's own arguments have, None where they have none."""
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
