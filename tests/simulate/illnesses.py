"""Trainings with one planted illness, and healthy ones that look ill: the seeds decide sizes, never the kind."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from simulate.workload import Workload, healthy, launch_bound

Make = Callable[[int], Workload]


@dataclass(frozen=True)
class Illness:
    """What is planted, and the verdict's regime and first cause that name it."""

    make: Make
    regime: str
    cause: str


def _sized(seed: int, low: float = 0.4, high: float = 2.0) -> tuple[Workload, Callable[[], int]]:
    """A healthy training, and a size for its illness in ns: `low` to `high` times the step."""
    rng, well = random.Random(seed + 5), healthy(seed)
    return well, lambda: int(well.step_ns * rng.uniform(low, high))


def _main_loader(seed: int) -> Workload:
    # The loader is hidden for as long as the queue is ahead, so it must be dearer than the device's whole step.
    well, size = _sized(seed, 1.2, 3.0)
    return well.but(loader="main", load_ns=size())


def _few_workers(seed: int) -> Workload:
    well, size = _sized(seed, 1.7, 3.0)
    workers = seed % 4 + 1
    return well.but(loader="workers", workers=workers, load_ns=size() * workers)


def _pageable(seed: int) -> Workload:
    well, size = _sized(seed, 0.3, 1.5)
    return well.but(loader="workers", load_ns=1_000_000, pinned=False, batch_bytes=size() * 5)


def _blocking(seed: int) -> Workload:
    well, size = _sized(seed, 0.3, 1.5)
    return well.but(loader="workers", load_ns=1_000_000, non_blocking=False, batch_bytes=size() * 20)


def _reads(seed: int) -> Workload:
    """A scalar read after every layer or two: it drains a queue that fills hardly faster than the device empties it."""
    rng, well = random.Random(seed), healthy(seed)
    pace = rng.randint(50_000, 80_000)
    close = well.but(kernel_ns=pace, operator_ns=int(pace * 0.7), layers=30, filled=1.0, loader="")
    return close.but(read_every_layers=rng.randint(1, 2), old_reads=rng.random() < 0.5)


def _checkpoints(seed: int) -> Workload:
    well, size = _sized(seed, 1.5, 4.0)
    return well.but(save_every=2, save_ns=size(), stacks=True)


def _unseen_checkpoints(seed: int) -> Workload:
    well, size = _sized(seed, 1.5, 4.0)
    return well.but(save_every=2, save_ns=max(size(), 6_000_000), stacks=False)


def _garbage(seed: int) -> Workload:
    well, size = _sized(seed, 1.3, 2.5)
    return well.but(collect_every=1, collect_ns=size(), stacks=True)


def _python(seed: int) -> Workload:
    well, size = _sized(seed, 1.3, 2.5)
    return well.but(pauses=1, pause_ns=size())


def _empty_cache(seed: int) -> Workload:
    return healthy(seed).but(layers=6, kernel_ns=200_000, empty_every=1, mallocs=8 + seed % 8)


def _collectives(seed: int) -> Workload:
    well, size = _sized(seed, 1.0, 2.0)
    return well.but(buckets=3, bucket_ns=size() // 2)


ILLNESSES: Mapping[str, Illness] = {
    "loader in the main process": Illness(_main_loader, "input", "loader_in_main_process"),
    "too few workers": Illness(_few_workers, "input", "too_few_workers"),
    "pageable copies": Illness(_pageable, "transfer", "pageable_copies"),
    "blocking copies": Illness(_blocking, "transfer", "blocking_copies"),
    "scalar reads in the forward pass": Illness(_reads, "sync", "scalar_reads"),
    "small kernels": Illness(lambda seed: launch_bound(seed).but(load_ns=0), "launch", "small_kernels"),
    "checkpoints": Illness(_checkpoints, "interruption", "checkpointing"),
    "checkpoints without frames": Illness(_unseen_checkpoints, "host", "host_python"),
    "garbage collection": Illness(_garbage, "interruption", "garbage_collection"),
    "Python between the steps": Illness(_python, "host", "host_python"),
    "emptied cache": Illness(_empty_cache, "allocator", "empty_cache"),
    "exposed collectives": Illness(_collectives, "communication", "exposed_collectives"),
}


def _busy(seed: int) -> Workload:
    """Healthy, and with a device so slow that the host is far ahead of it."""
    return healthy(seed).but(kernel_ns=900_000, operator_ns=15_000, layers=12)


HARD_NEGATIVES: Mapping[str, Make] = {
    "a scalar read in every step": lambda seed: _busy(seed).but(scalar_reads=1),
    "old scalar reads in every step": lambda seed: _busy(seed).but(scalar_reads=2, old_reads=True),
    "metrics printed in every step": lambda seed: _busy(seed).but(metric_reads=4, print_every=1),
    "a full launch queue": lambda seed: _busy(seed).but(layers=150, kernel_ns=80_000, operator_ns=6_000, steps=4),
    "overlapped collectives": lambda seed: _busy(seed).but(buckets=4, bucket_ns=_busy(seed).device_ns // 50),
    "workers just fast enough": lambda seed: _busy(seed).but(loader="workers", workers=2, load_ns=50_000_000),
    "a main-process loader behind the queue": lambda seed: _busy(seed).but(loader="main", load_ns=5_000_000),
    "a tiny loader": lambda seed: _busy(seed).but(loader="main", load_ns=20_000),
    "blocking copies of small batches": lambda seed: _busy(seed).but(
        loader="workers", non_blocking=False, pinned=False, batch_bytes=1_000_000
    ),
    "a pause hidden by the queue": lambda seed: _busy(seed).but(pauses=1, pause_ns=9_000_000),
    "gradient accumulation": lambda seed: _busy(seed).but(accumulation=3, layers=6),
    "a captured graph": lambda seed: _busy(seed).but(graph=True, kernel_ns=60_000, layers=40),
}
