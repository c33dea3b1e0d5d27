"""Trainings with one planted problem, and healthy ones that look slow. Seeds choose sizes, never the kind."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from simulate.workload import Workload, healthy, launch_bound

BF16 = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"
FP32 = "ampere_sgemm_128x64_tn"
ODD = "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1>"

Make = Callable[[int], Workload]


@dataclass(frozen=True)
class PlantedProblem:
    """A generator of trainings with one problem, and the expected verdict regime and first cause.

    `also` lists causes that are accepted instead if the recording cannot distinguish them.
    """

    make: Make
    regime: str
    cause: str
    also: tuple[str, ...] = ()

    @property
    def named(self) -> tuple[str, ...]:
        """The accepted causes of the first finding."""
        return (self.cause, *self.also)


def _sized(seed: int, low: float = 0.4, high: float = 2.0) -> tuple[Workload, Callable[[], int]]:
    """Returns a healthy training, and a function that draws a problem's size in ns: `low` to `high` times the step."""
    rng, well = random.Random(seed + 5), healthy(seed)
    return well, lambda: int(well.step_ns * rng.uniform(low, high))


def _main_loader(seed: int) -> Workload:
    # The launch queue hides the loader, so one batch must take longer than the device's whole step.
    well, size = _sized(seed, 1.2, 3.0)
    return well.but(loader="main", load_ns=size())


def _few_workers(seed: int) -> Workload:
    well, size = _sized(seed, 1.7, 3.0)
    workers = seed % 4 + 1
    steps = max(well.steps, 6)  # fewer fetches do not show why workers are late
    return well.but(loader="workers", workers=workers, load_ns=size() * workers, steps=steps)


def _pageable(seed: int) -> Workload:
    well, size = _sized(seed, 0.3, 1.5)
    return well.but(loader="workers", load_ns=1_000_000, pinned=False, batch_bytes=size() * 5)


def _blocking(seed: int) -> Workload:
    well, size = _sized(seed, 0.3, 1.5)
    return well.but(loader="workers", load_ns=1_000_000, non_blocking=False, batch_bytes=size() * 24)


def _reads(seed: int) -> Workload:
    """A scalar read after every layer or two. It drains a queue that fills hardly faster than the device empties it."""
    rng, well = random.Random(seed), healthy(seed)
    pace = rng.randint(50_000, 80_000)
    close = well.but(kernel_ns=pace, operator_ns=int(pace * 0.7), layers=30, filled=1.0, loader="")
    return close.but(read_every_layers=rng.randint(1, 2), old_reads=rng.random() < 0.5)


def _short_steps(seed: int) -> Workload:
    """Steps of about a millisecond: short enough that one wait per step costs a tenth of the time."""
    rng = random.Random(seed)
    short = healthy(seed).but(layers=3, kernel_ns=rng.randint(90_000, 130_000), operator_ns=12_000, loader="")
    return short.but(optimizer_kernels=2, old_reads=rng.random() < 0.5, contractions=0.5)


def _one_read(seed: int) -> Workload:
    return _short_steps(seed).but(print_every=1)


def _metrics(seed: int) -> Workload:
    return _short_steps(seed).but(metric_reads=4 + seed % 4)


def _synchronize(seed: int) -> Workload:
    return _short_steps(seed).but(synchronizes=1, layers=1, operator_ns=30_000, kernel_ns=70_000)


def _masks(seed: int) -> Workload:
    return _reads(seed).but(read_every_layers=0, masked_every_layers=1)


def _uneven(seed: int) -> Workload:
    well, size = _sized(seed, 0.5, 0.9)
    return well.but(loader="main", load_ns=size(), slow_batches=0.3, steps=16, layers=6)


def _files(seed: int) -> Workload:
    return _main_loader(seed).but(reading=0.8, stacks=True)


def _slow_link(seed: int) -> Workload:
    well, size = _sized(seed, 0.3, 1.5)
    rate = random.Random(seed).uniform(5.0, 14.0)
    return well.but(loader="workers", load_ns=1_000_000, non_blocking=False, link_rate=rate, batch_bytes=size() * 10)


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


def _full_memory(seed: int) -> Workload:
    return _empty_cache(seed).but(pressed=True)


def _late_collectives(seed: int) -> Workload:
    return _collectives(seed).but(late_buckets=True)


def _small_messages(seed: int) -> Workload:
    well = _short_steps(seed)
    return well.but(layers=30, kernel_ns=30_000, operator_ns=5_000, buckets=30, bucket_ns=130_000, bucket_bytes=64_000)


def _slow_network(seed: int) -> Workload:
    rng, well = random.Random(seed), healthy(seed)
    size, rate = rng.randint(6, 40) * 1_000_000, rng.uniform(0.3, 2.0)
    return well.but(buckets=3, bucket_bytes=size, bucket_ns=int(max(size / rate, well.step_ns / 2)))


def _data_parallel(seed: int) -> Workload:
    return launch_bound(seed).but(load_ns=0, devices=2, data_parallel=True)


def _compiled(seed: int) -> Workload:
    return launch_bound(seed).but(load_ns=0, stream_name="triton_poi_fused_add_gelu_3", contractions=0.3)


def _products(name: str) -> Make:
    return lambda seed: healthy(seed).but(loader="", contractions=0.9, product_name=name)


def _pointwise(seed: int) -> Workload:
    name = "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>"
    return healthy(seed).but(loader="", contractions=0.1, stream_name=name)


def _collectives(seed: int) -> Workload:
    well, size = _sized(seed, 1.0, 2.0)
    return well.but(buckets=3, bucket_ns=size() // 2)


PROBLEMS: Mapping[str, PlantedProblem] = {
    "loader in the main process": PlantedProblem(_main_loader, "input", "loader_in_main_process"),
    "too few workers": PlantedProblem(_few_workers, "input", "too_few_workers"),
    "pageable copies": PlantedProblem(_pageable, "transfer", "pageable_copies", ("exposed_copies",)),
    "blocking copies": PlantedProblem(_blocking, "transfer", "blocking_copies", ("exposed_copies",)),
    "a slow link": PlantedProblem(_slow_link, "transfer", "degraded_link", ("exposed_copies", "blocking_copies")),
    "uneven storage": PlantedProblem(_uneven, "input", "slow_storage"),
    "a loader that reads files": PlantedProblem(_files, "input", "slow_storage"),
    "scalar reads in the forward pass": PlantedProblem(_reads, "sync", "metric_reads"),
    "a scalar read that drains the queue": PlantedProblem(_one_read, "sync", "scalar_reads"),
    "metrics read one by one": PlantedProblem(_metrics, "sync", "metric_reads"),
    "a synchronize in every step": PlantedProblem(_synchronize, "sync", "explicit_waits"),
    "masks in the forward pass": PlantedProblem(_masks, "sync", "data_dependent_shapes"),
    "small kernels": PlantedProblem(lambda seed: launch_bound(seed).but(load_ns=0), "launch", "small_kernels"),
    "checkpoints": PlantedProblem(_checkpoints, "interruption", "checkpointing"),
    "checkpoints without frames": PlantedProblem(_unseen_checkpoints, "host", "host_python"),
    "garbage collection": PlantedProblem(_garbage, "interruption", "garbage_collection"),
    "Python between the steps": PlantedProblem(_python, "host", "host_python"),
    "emptied cache": PlantedProblem(_empty_cache, "allocator", "empty_cache"),
    "full memory": PlantedProblem(_full_memory, "allocator", "memory_pressure"),
    "exposed collectives": PlantedProblem(_collectives, "communication", "exposed_collectives"),
    "collectives after the backward pass": PlantedProblem(_late_collectives, "communication", "no_overlap"),
    "small messages": PlantedProblem(_small_messages, "communication", "small_messages"),
    "a slow network": PlantedProblem(_slow_network, "communication", "slow_interconnect", ("exposed_collectives",)),
    "DataParallel": PlantedProblem(_data_parallel, "launch", "data_parallel"),
    "a compiled model without graphs": PlantedProblem(_compiled, "launch", "no_graph"),
    "products in fp32": PlantedProblem(_products(FP32), "compute", "fp32_matmul", ("fp32_without_tf32", "")),
    "products of odd shapes": PlantedProblem(_products(ODD), "compute", "misaligned_shapes"),
    "pointwise kernels one by one": PlantedProblem(_pointwise, "memory", "unfused_pointwise"),
}


def _busy(seed: int) -> Workload:
    """A healthy training on a device so slow that the host is far ahead of it."""
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
    "reads of tensors on the CPU": lambda seed: _busy(seed).but(cpu_reads=200),
    "a loader without workers that pins": lambda seed: _busy(seed).but(loader="main", load_ns=5_000_000, pinned=True),
    "mixed precision": lambda seed: _busy(seed).but(product_name=BF16, contractions=0.9),
    "a captured graph": lambda seed: _busy(seed).but(graph=True, kernel_ns=60_000, layers=40),
}
