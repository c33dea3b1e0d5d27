"""A training as a few numbers, healthy by default. A problem is a changed number."""

import random
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Workload:
    """Parameters of a training. Times in ns. Counts are per step; `*_every` is a period in steps, 0 means never."""

    seed: int = 0
    steps: int = 6
    layers: int = 12
    # The device: median kernel time, share of contractions, share of kernels that fill the device.
    kernel_ns: int = 400_000
    contractions: float = 0.7
    filled: float = 1.0
    optimizer_kernels: int = 6
    product_name: str = ""  # the kernel of contractions; default: any example of knowledge/kernels.toml
    stream_name: str = ""
    stall_every: int = 0
    stall_ns: int = 0
    # The host: time per operator, in addition to the launch.
    operator_ns: int = 20_000
    slow_launches: float = 0.0  # share of launch calls that take ten times as long
    graph: bool = False
    accumulation: int = 1
    devices: int = 1
    data_parallel: bool = False  # one process drives the devices with DataParallel
    # The loader: "" reads nothing, "main" reads in the training process, "workers" in `workers` processes.
    loader: str = "workers"
    load_ns: int = 2_000_000
    workers: int = 4
    slow_batches: float = 0.0  # share of batches that take ten times as long to create
    reading: float = 0.0  # share of a batch's creation that reads files
    batch_bytes: int = 8_000_000
    pinned: bool = True
    non_blocking: bool = True
    link_rate: float = 24.0  # bytes per ns from pinned memory
    # Waits and interruptions.
    scalar_reads: int = 0
    read_every_layers: int = 0  # a scalar read in the forward pass, as for a mask or a loss scale
    metric_reads: int = 0
    cpu_reads: int = 0  # .item() of CPU tensors, as optimizers read their step counts
    synchronizes: int = 0  # torch.cuda.synchronize() at the end of the step
    masked_every_layers: int = 0  # an operator in the forward pass with a data-dependent output size
    old_reads: bool = False  # before torch 2.4, the copy call itself waited
    print_every: int = 0
    save_every: int = 0
    save_ns: int = 0
    evaluate_every: int = 0
    collect_every: int = 0
    collect_ns: int = 0
    empty_every: int = 0
    mallocs: int = 0
    pressed: bool = False  # memory is freed inside operators, as when it is full, and not by empty_cache()
    pauses: int = 0
    pause_ns: int = 0
    # Collectives: how many, and how long each.
    buckets: int = 0
    bucket_ns: int = 0
    bucket_bytes: int = 0  # recorded if not 0
    late_buckets: bool = False  # launched after the backward pass
    # The recording.
    stacks: bool = True

    def but(self, **changes: object) -> "Workload":
        """Returns the same training with some numbers changed."""
        return replace(self, **changes)  # type: ignore[arg-type]

    @property
    def device_ns(self) -> int:
        """Approximate device time per step, to scale other times."""
        if self.graph:
            return 3 * self.layers * self.kernel_ns
        return 3 * self.layers * self.kernel_ns * self.accumulation

    @property
    def host_ns(self) -> int:
        """Approximate dispatch time of the host per step."""
        return 3 * self.layers * (self.operator_ns + 8_000) * self.accumulation

    @property
    def step_ns(self) -> int:
        """Approximate step time without a problem."""
        return max(self.device_ns, self.host_ns)


def healthy(seed: int) -> Workload:
    """Returns a device-bound training."""
    rng = random.Random(seed)
    return Workload(
        seed=seed,
        steps=rng.randint(4, 7),
        layers=rng.randint(6, 20),
        kernel_ns=int(rng.uniform(150_000, 800_000)),
        contractions=rng.choice((0.2, 0.5, 0.8)),
        operator_ns=int(rng.uniform(10_000, 40_000)),
        optimizer_kernels=rng.randint(2, 10),
        loader=rng.choice(("", "workers", "workers", "main")),
        load_ns=0,
        batch_bytes=int(rng.uniform(1e5, 1e7)),
        old_reads=rng.random() < 0.5,
        stacks=rng.random() < 0.5,
    )


def launch_bound(seed: int) -> Workload:
    """Returns a training with kernels that end before the next one is launched."""
    rng = random.Random(seed)
    well = healthy(seed)
    return well.but(kernel_ns=int(rng.uniform(6_000, 20_000)), layers=rng.randint(20, 60))


def random_workload(seed: int) -> Workload:
    """Returns a random training: healthy, with one problem, or with several, each of any size."""
    rng = random.Random(seed * 7919 + 13)
    work = rng.choice((healthy, healthy, launch_bound))(seed)
    work = _random_shape(work, rng)
    for change in rng.sample(_CHANGES, rng.choice((0, 1, 1, 2, 3))):
        work = change(work, rng)
    return work


def _random_shape(work: Workload, rng: random.Random) -> Workload:
    if rng.random() < 0.15:
        work = work.but(graph=True)
    if rng.random() < 0.15:
        work = work.but(accumulation=rng.randint(2, 4), layers=max(work.layers // 2, 3))
    if rng.random() < 0.1:
        work = work.but(devices=2)
    if rng.random() < 0.3:
        work = work.but(slow_launches=rng.uniform(0.01, 0.1))
    if rng.random() < 0.15:
        work = work.but(filled=rng.uniform(0.1, 0.8))
    if work.loader == "main":
        work = work.but(load_ns=int(work.step_ns * rng.uniform(0.001, 0.05)))
    if work.loader == "workers":
        work = work.but(load_ns=int(work.step_ns * work.workers * rng.uniform(0.05, 0.7)))
    return work


def _part(work: Workload, rng: random.Random, low: float = 0.02, high: float = 1.5) -> int:
    return int(work.step_ns * low * (high / low) ** rng.random())


def _slow_loader(work: Workload, rng: random.Random) -> Workload:
    if rng.random() < 0.5:
        return work.but(loader="main", load_ns=_part(work, rng))
    workers = rng.randint(1, 8)
    return work.but(loader="workers", workers=workers, load_ns=int(work.step_ns * workers * rng.uniform(0.5, 3.0)))


def _copies(work: Workload, rng: random.Random) -> Workload:
    bytes_ = int(_part(work, rng, 0.01, 0.8) * rng.choice((5.0, 20.0)))
    return work.but(batch_bytes=bytes_, pinned=rng.random() < 0.5, non_blocking=rng.random() < 0.5)


def _reads(work: Workload, rng: random.Random) -> Workload:
    if rng.random() < 0.3:
        return work.but(read_every_layers=rng.randint(1, 6))
    if rng.random() < 0.5:
        return work.but(scalar_reads=rng.choice((1, 1, 2, 4)))
    return work.but(metric_reads=rng.choice((1, 3, 10)))


def _prints(work: Workload, rng: random.Random) -> Workload:
    return work.but(print_every=rng.choice((1, 2, 3)))


def _saves(work: Workload, rng: random.Random) -> Workload:
    return work.but(save_every=rng.choice((1, 2, 3)), save_ns=max(_part(work, rng, 0.1, 3.0), 6 * _unseen(work)))


def _unseen(work: Workload) -> int:
    """Returns the shortest Python time that can be distinguished from dispatching without frames: over 0.5 ms."""
    return 0 if work.stacks else 1_000_000


def _evaluates(work: Workload, rng: random.Random) -> Workload:
    return work.but(evaluate_every=rng.choice((2, 3)))


def _collects(work: Workload, rng: random.Random) -> Workload:
    return work.but(collect_every=1, collect_ns=max(_part(work, rng, 0.05, 1.0), _unseen(work)))


def _allocates(work: Workload, rng: random.Random) -> Workload:
    return work.but(empty_every=1, mallocs=rng.randint(1, 12))


def _pauses(work: Workload, rng: random.Random) -> Workload:
    return work.but(pauses=rng.choice((1, 1, 2)), pause_ns=max(_part(work, rng), 1_000_000))


def _collectives(work: Workload, rng: random.Random) -> Workload:
    buckets = rng.randint(1, 5)
    return work.but(buckets=buckets, bucket_ns=_part(work, rng, 0.05, 1.5) // buckets)


def _stalls(work: Workload, rng: random.Random) -> Workload:
    return work.but(stall_every=rng.randint(3, 20), stall_ns=int(rng.uniform(30_000, 400_000)))


_CHANGES = (
    _slow_loader,
    _slow_loader,
    _copies,
    _reads,
    _reads,
    _prints,
    _saves,
    _evaluates,
    _collects,
    _allocates,
    _pauses,
    _collectives,
    _collectives,
    _stalls,
)
