"""Jobs of the usual kinds of parallelism, with `Faults` planted."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from simulate.jobs.program import Comm, Group, Item, Job, Mark, Start, Wait, Work

US, MS = 1_000.0, 1_000_000.0
PER_HOST = 4
STAGES = 4
MAX_EXPERT_RANKS = 64
FIRST_STEP = 3
"""The number of the first step in which something may be planted."""


@dataclass
class Faults:
    """What is planted. Factors and extra times (share of the usual work of the rank's step) by rank, stage or group."""

    host: dict[int, float] = field(default_factory=dict)  # extra host time
    device: dict[int, float] = field(default_factory=dict)  # factor of all kernels
    input: dict[int, float] = field(default_factory=dict)  # extra time in the loader, per step
    stage: dict[int, float] = field(default_factory=dict)  # factor of the work of a stage
    link: dict[str, float] = field(default_factory=dict)  # factor of the transfers of a group, or of "a->b"
    data: float = 0.0  # spread of the amount of work by rank, step and microbatch
    fixed_data: dict[int, float] = field(default_factory=dict)  # factor of the amount of work of a rank
    experts: dict[int, float] = field(default_factory=dict)  # factor of the tokens of a rank
    pauses: dict[tuple[int, int], float] = field(default_factory=dict)  # interruption by (rank, step)
    collections: dict[tuple[int, int], float] = field(default_factory=dict)  # garbage collection by (rank, step)
    microbatches: int = 0
    overlap: bool = True
    portions: int = 1  # of the batch of an optimizer step
    synced: bool = True  # gradients are exchanged after each portion, not only after the last one
    wire: float = 1.0
    work: float = 1.0  # factor of all device work


@dataclass(frozen=True)
class Shape:
    """The size of a job. `noise` is the standard deviation of each piece of work, as a share.

    Before its `steps` it runs `lead` more: those that a recording has and the analysis leaves out.
    """

    ranks: int = 8
    steps: int = 7
    lead: int = 0
    seed: int = 0
    noise: float = 0.01
    work: float = 40 * MS

    @property
    def numbers(self) -> range:
        """The numbers of all steps."""
        return range(FIRST_STEP - self.lead, FIRST_STEP + self.steps)


class _Builder:
    """Adds items to the program of each rank."""

    def __init__(self, shape: Shape, faults: Faults) -> None:
        self.shape, self.faults = shape, faults
        self.random = Random(shape.seed)
        self.programs: list[list[Item]] = [[] for _ in range(shape.ranks)]
        self.groups: dict[str, Group] = {}

    def group(self, name: str, description: str, ranks: tuple[int, ...]) -> str:
        self.groups[name] = Group(name, description, ranks)
        return name

    def work(self, rank: int, share: float, stage: int = 0, amount: float = 1.0) -> None:
        """Adds `share` of the usual work of a step, with a little host time in between."""
        faults, base = self.faults, self.shape.work * share
        noise = max(self.random.gauss(1.0, self.shape.noise), 0.5)
        factor = amount * faults.work * faults.stage.get(stage, 1.0) * faults.fixed_data.get(rank, 1.0)
        slow = faults.device.get(rank, 1.0)
        self.programs[rank].append(Work("device", base * factor * noise * slow * 0.9, int(base * factor * 10), slow))
        host = 0.1 + faults.host.get(rank, 0.0)
        self.programs[rank].append(Work("host", base * host * max(self.random.gauss(1.0, 0.05), 0.5)))

    def amounts(self, count: int) -> list[float]:
        """Returns the amounts of work of the batches of a step, relative to their mean."""
        drawn = [max(self.random.gauss(1.0, self.faults.data), 0.3) if self.faults.data else 1.0 for _ in range(count)]
        return [amount * count / sum(drawn) for amount in drawn]

    def begin(self, rank: int, step: int) -> None:
        """Begins a step: its mark, its input, and what interrupts it."""
        program, work = self.programs[rank], self.shape.work
        program.append(Mark(step))
        program.append(Work("input", work * (0.02 + self.faults.input.get(rank, 0.0)) * self.random.uniform(0.9, 1.1)))
        for kind, planted in (("interruption", self.faults.pauses), ("collection", self.faults.collections)):
            if (rank, step) in planted:
                program.append(Work(kind, work * planted[rank, step]))

    def comm(
        self,
        operation: str,
        group: str,
        size: int,
        wire: float,
        lane: int = 20,
        ranks: tuple[int, ...] = (),
        repeated: bool = False,
    ) -> Comm:
        ranks = ranks or self.groups[group].ranks
        factor = self.faults.link.get(group, 1.0)
        if operation == "p2p":
            factor = self.faults.link.get(f"{ranks[0]}->{ranks[1]}", factor)
        jitter = max(self.random.gauss(1.0, 0.02), 0.8)
        wire *= factor * self.faults.wire * jitter
        return Comm(operation, group, ranks, size, wire, lane, end_jitter=300.0, repeated=repeated)

    def job(self) -> Job:
        hosts = [rank // PER_HOST for rank in range(self.shape.ranks)]
        skew = [0, *(self.random.randrange(-50_000_000, 50_000_000) for _ in range(max(hosts)))]
        return Job(self.programs, list(self.groups.values()), hosts, skew)


def data_parallel(shape: Shape, faults: Faults) -> Job:
    """DDP: gradients are reduced in buckets during each backward pass; without overlap, all after it. If they are not
    synced, only after the last portion of a batch."""
    build = _Builder(shape, faults)
    everyone = tuple(range(shape.ranks))
    build.group("0", "default_pg", everyone)
    buckets = 4
    for step in shape.numbers:
        exchanges = [
            [build.comm("allreduce", "0", 25 << 20, 1.2 * MS, repeated=not last) for _ in range(buckets)]
            if faults.synced or last
            else []
            for last in (portion == faults.portions - 1 for portion in range(faults.portions))
        ]
        amounts = build.amounts(shape.ranks)
        for rank in everyone:
            build.begin(rank, step)
            amount, program = amounts[rank] / faults.portions, build.programs[rank]
            for comms in exchanges:
                build.work(rank, 0.33, amount=amount)
                for number in range(buckets):
                    build.work(rank, 0.66 / buckets, amount=amount)
                    program += map(Start, comms[number : number + 1]) if faults.overlap else []
                program += [] if faults.overlap else map(Start, comms)
                program += map(Wait, comms[-1:])
            build.work(rank, 0.05)
    return build.job()


def sharded(shape: Shape, faults: Faults) -> Job:
    """FSDP: parameters of each layer are gathered one layer ahead, gradients are scattered during backward."""
    build = _Builder(shape, faults)
    everyone = tuple(range(shape.ranks))
    build.group("0", "default_pg", everyone)
    build.group("1", "mesh_fsdp", everyone)
    layers = 4
    for step in shape.numbers:
        gathers = [build.comm("_allgather_base", "1", 48 << 20, 1.0 * MS) for _ in range(2 * layers)]
        scatters = [build.comm("_reduce_scatter_base", "1", 48 << 20, 1.0 * MS, lane=22) for _ in range(layers)]
        amounts = build.amounts(shape.ranks)
        for rank in everyone:
            program = build.programs[rank]
            build.begin(rank, step)
            amount = amounts[rank]
            program.append(Start(gathers[0]))
            for number, gather in enumerate(gathers):
                ahead = gathers[number + 1 : number + 2] if faults.overlap else []
                program += [*(Start(comm) for comm in ahead), Wait(gather)]
                backward = number >= layers
                build.work(rank, (0.66 if backward else 0.33) / layers, amount=amount)
                if backward:
                    program.append(Start(scatters[number - layers]))
                if not faults.overlap:
                    program += [Wait(scatters[number - layers])] if backward else []
                    program += [Start(gathers[number + 1])] if number + 1 < len(gathers) else []
            program.append(Wait(scatters[-1]))
            build.work(rank, 0.05)
    return build.job()


def tensor_parallel(shape: Shape, faults: Faults) -> Job:
    """Megatron's layers split over the devices of a host, gradients reduced over the hosts."""
    build = _Builder(shape, faults)
    build.group("0", "default_pg", tuple(range(shape.ranks)))
    inner = [tuple(range(first, first + PER_HOST)) for first in range(0, shape.ranks, PER_HOST)]
    outer = [tuple(range(local, shape.ranks, PER_HOST)) for local in range(PER_HOST)]
    tensor = [build.group(f"t{n}", "TENSOR_MODEL_PARALLEL_GROUP", ranks) for n, ranks in enumerate(inner)]
    data = [build.group(f"d{n}", "DATA_PARALLEL_GROUP", ranks) for n, ranks in enumerate(outer)]
    layers = 6
    for step in shape.numbers:
        split = [[build.comm("allreduce", name, 8 << 20, 0.15 * MS) for _ in range(4 * layers)] for name in tensor]
        last = [build.comm("allreduce", name, 100 << 20, 2.0 * MS, lane=22) for name in data]
        amounts = build.amounts(len(inner))
        for host, ranks in enumerate(inner):
            amount = amounts[host]
            for local, rank in enumerate(ranks):
                build.begin(rank, step)
                for comm in split[host]:
                    build.work(rank, 1.0 / len(split[host]), amount=amount)
                    build.programs[rank] += [Start(comm), Wait(comm)]
                build.programs[rank] += [Start(last[local]), Wait(last[local])]
                build.work(rank, 0.05)
    return build.job()


def experts(shape: Shape, faults: Faults) -> Job:
    """A mixture of experts: tokens go to the ranks of their experts and back; gradients are reduced over all."""
    build = _Builder(shape, faults)
    everyone = tuple(range(shape.ranks))
    build.group("0", "default_pg", everyone)
    size = min(shape.ranks, MAX_EXPERT_RANKS)
    parts = [tuple(range(first, first + size)) for first in range(0, shape.ranks, size)]
    names = [build.group(f"e{n}", "EXPERT_MODEL_PARALLEL_GROUP", ranks) for n, ranks in enumerate(parts)]
    layers, tokens = 4, 4096
    for step in shape.numbers:
        exchanges = []
        for name, ranks in zip(names, parts, strict=True):
            tokens_of = [int(tokens * faults.experts.get(rank, 1.0)) for rank in ranks]
            exchanges.append([build.comm("all_to_allv", name, 16 << 20, 0.15 * MS) for _ in range(4 * layers)])
            for comm in exchanges[-1]:
                comm.splits = dict.fromkeys(ranks, tuple(tokens_of))
        last = build.comm("allreduce", "0", 50 << 20, 1.5 * MS, lane=22)
        amounts = build.amounts(shape.ranks)
        for rank in everyone:
            build.begin(rank, step)
            amount = amounts[rank]
            for number, comm in enumerate(exchanges[rank // size]):
                mine = faults.experts.get(rank, 1.0) if number % 2 else 1.0
                build.work(rank, 0.95 / (4 * layers), amount=amount * mine)
                build.programs[rank] += [Start(comm), Wait(comm)]
            build.programs[rank] += [Start(last), Wait(last)]
            build.work(rank, 0.05)
    return build.job()


def pipeline(shape: Shape, faults: Faults) -> Job:
    """1F1B over 4 stages, with replicas; gradients of each stage are reduced over the replicas."""
    return _pipeline(shape, faults, tensor=1)


def megatron(shape: Shape, faults: Faults) -> Job:
    """1F1B over 4 stages whose layers are split over the devices of a host, with replicas."""
    return _pipeline(shape, faults, tensor=PER_HOST)


def _pipeline(shape: Shape, faults: Faults, tensor: int) -> Job:
    """Ranks are in Megatron's order: first those of a tensor-parallel group, then those of a stage."""
    build = _Builder(shape, faults)
    per_stage = shape.ranks // STAGES
    microbatches = faults.microbatches or 4 * STAGES
    build.group("0", "default_pg", tuple(range(shape.ranks)))
    lines = [tuple(range(first, shape.ranks, per_stage)) for first in range(per_stage)]
    pipes = [build.group(f"p{n}", "PIPELINE_MODEL_PARALLEL_GROUP", ranks) for n, ranks in enumerate(lines)]
    splits = [tuple(range(first, first + tensor)) for first in range(0, shape.ranks, tensor)] if tensor > 1 else []
    tensors = [build.group(f"t{n}", "TENSOR_MODEL_PARALLEL_GROUP", ranks) for n, ranks in enumerate(splits)]
    data = []
    for first in (stage * per_stage + local for stage in range(STAGES) for local in range(tensor)):
        end = first // per_stage * per_stage + per_stage
        data.append(build.group(f"d{len(data)}", "DATA_PARALLEL_GROUP", tuple(range(first, end, tensor))))
    replicas = per_stage // tensor
    for step in shape.numbers:
        last = [build.comm("allreduce", name, 100 << 20, 1.0 * MS, lane=22) for name in data]
        drawn = build.amounts(microbatches * replicas)
        inner = {
            name: [build.comm("allreduce", name, 8 << 20, 0.1 * MS, lane=24) for _ in range(2 * microbatches)]
            for name in tensors
        }
        for number, ranks in enumerate(lines):
            replica = number // tensor
            amounts = drawn[replica * microbatches : (replica + 1) * microbatches]
            splits_of = [inner[tensors[rank // tensor]] for rank in ranks] if tensor > 1 else []
            _one_forward_one_backward(build, step, pipes[number], ranks, amounts, splits_of)
            for stage, rank in enumerate(ranks):
                if replicas > 1:
                    comm = last[stage * tensor + number % tensor]
                    build.programs[rank] += [Start(comm), Wait(comm)]
                build.work(rank, 0.03)
    return build.job()


def _one_forward_one_backward(
    build: _Builder, step: int, group: str, ranks: tuple[int, ...], amounts: list[float], tensors: list[list[Comm]]
) -> None:
    """Adds one step. `tensors` are per stage the all-reduces of its layers, one per phase of a microbatch."""
    stages, count = len(ranks), len(amounts)
    size, wire = 4 << 20, 0.05 * MS

    def messages(stage: int, to: int, lane: int) -> dict[tuple[int, int], Comm]:
        pair = (ranks[stage], ranks[to])
        return {(stage, m): build.comm("p2p", group, size, wire, lane + 2 * stage, pair) for m in range(count)}

    forward: dict[tuple[int, int], Comm] = {}
    backward: dict[tuple[int, int], Comm] = {}
    for stage in range(stages - 1):
        forward |= messages(stage, stage + 1, 30)
        backward |= messages(stage + 1, stage, 31)

    def run(stage: int, phase: str, m: int) -> None:
        rank, share = ranks[stage], 0.97 / count / 3 * (1 if phase == "F" else 2)
        program = build.programs[rank]
        before = stage - 1 if phase == "F" else stage + 1
        inbound = forward if phase == "F" else backward
        if (before, m) in inbound:
            program += [Start(inbound[before, m]), Wait(inbound[before, m])]
        if tensors:
            comm = tensors[stage][2 * m + (phase == "B")]
            build.work(rank, share / 2, stage=stage, amount=amounts[m])
            program += [Start(comm), Wait(comm)]
            share /= 2
        build.work(rank, share, stage=stage, amount=amounts[m])
        if (stage, m) in inbound:
            program.append(Start(inbound[stage, m]))

    for stage, rank in enumerate(ranks):
        build.begin(rank, step)
        warm = min(stages - 1 - stage, count)
        for m in range(warm):
            run(stage, "F", m)
        for m in range(count - warm):
            run(stage, "F", m + warm)
            run(stage, "B", m)
        for m in range(count - warm, count):
            run(stage, "B", m)
        # The sends of the step are done before the optimizer.
        sends = [comm for (s, _), comm in [*forward.items(), *backward.items()] if s == stage and comm.ranks[0] == rank]
        build.programs[rank] += [Wait(comm) for comm in sends[-2:]]


Action = tuple[str, int, int]
"""A phase (F, B, or W for the gradients of weights alone), the virtual stage and the microbatch."""

CHUNKS = 2
"""Virtual stages of each rank of an interleaved pipeline."""


def interleaved(shape: Shape, faults: Faults) -> Job:
    """Megatron's interleaved 1F1B (arXiv 2104.04473, section 2.2): each rank has several chunks of layers."""

    def order(stage: int, count: int) -> list[Action]:
        whole = count * CHUNKS
        warm = min(2 * (STAGES - 1 - stage) + (CHUNKS - 1) * STAGES, whole)
        forward = [_place(number, backward=False) for number in range(whole)]
        backward = [_place(number, backward=True) for number in range(whole)]
        actions = [("F", chunk * STAGES + stage, m) for chunk, m in forward[:warm]]
        for (chunk, m), (back, n) in zip(forward[warm:], backward, strict=False):
            actions += [("F", chunk * STAGES + stage, m), ("B", back * STAGES + stage, n)]
        return actions + [("B", chunk * STAGES + stage, m) for chunk, m in backward[whole - warm :]]

    return _by_schedule(shape, faults, order, CHUNKS)


def _place(number: int, *, backward: bool) -> tuple[int, int]:
    """Returns the chunk and the microbatch of a rank's n-th forward or backward pass: STAGES microbatches of a chunk,
    then of the next one."""
    chunk = number // STAGES % CHUNKS
    microbatch = number // (STAGES * CHUNKS) * STAGES + number % STAGES
    return (CHUNKS - 1 - chunk if backward else chunk), microbatch


def zero_bubble(shape: Shape, faults: Faults) -> Job:
    """ZB-H1 (arXiv 2401.10241): the gradients of weights fill the time in which a stage would wait."""

    def order(stage: int, count: int) -> list[Action]:
        warm = min(STAGES - 1 - stage, count)
        actions: list[Action] = [("F", stage, m) for m in range(warm)]
        done = 0
        for m in range(count):
            actions += [("F", stage, m + warm)] if m + warm < count else []
            actions.append(("B", stage, m))
            if m >= stage or m + warm >= count:
                actions.append(("W", stage, done))
                done += 1
        return actions + [("W", stage, m) for m in range(done, count)]

    return _by_schedule(shape, faults, order, 1)


def _by_schedule(shape: Shape, faults: Faults, order: Callable[[int, int], list[Action]], chunks: int) -> Job:
    """Returns a pipeline with replicas whose ranks work in the given order."""
    build = _Builder(shape, faults)
    per_stage = shape.ranks // STAGES
    microbatches = faults.microbatches or 4 * STAGES
    build.group("0", "default_pg", tuple(range(shape.ranks)))
    lines = [tuple(range(first, shape.ranks, per_stage)) for first in range(per_stage)]
    pipes = [build.group(f"p{n}", "PIPELINE_MODEL_PARALLEL_GROUP", ranks) for n, ranks in enumerate(lines)]
    bounds = [(stage * per_stage, (stage + 1) * per_stage) for stage in range(STAGES)]
    data = [build.group(f"d{n}", "DATA_PARALLEL_GROUP", tuple(range(*ends))) for n, ends in enumerate(bounds)]
    split = any(phase == "W" for phase, _, _ in order(0, microbatches))
    for step in shape.numbers:
        last = [build.comm("allreduce", name, 100 << 20, 1.0 * MS, lane=22) for name in data]
        drawn = build.amounts(microbatches * per_stage)
        for replica, ranks in enumerate(lines):
            amounts = drawn[replica * microbatches : (replica + 1) * microbatches]
            messages = _messages(build, pipes[replica], ranks, microbatches, chunks)
            for stage, rank in enumerate(ranks):
                build.begin(rank, step)
                for action in order(stage, microbatches):
                    _act(build, rank, action, messages, amounts, chunks, 1 if split else 2)
                build.programs[rank] += [Start(last[stage]), Wait(last[stage])] if per_stage > 1 else []
                build.work(rank, 0.03)
    return build.job()


def _messages(
    build: _Builder, group: str, ranks: tuple[int, ...], count: int, chunks: int
) -> dict[tuple[str, int, int], Comm]:
    """Returns the messages by the phase, the virtual stage and the microbatch that need them."""
    found = {}
    for virtual in range(STAGES * chunks - 1):
        here, there = ranks[virtual % STAGES], ranks[(virtual + 1) % STAGES]
        for m in range(count):
            found["F", virtual + 1, m] = build.comm("p2p", group, 4 << 20, 0.05 * MS, 30 + 4 * virtual, (here, there))
            found["B", virtual, m] = build.comm("p2p", group, 4 << 20, 0.05 * MS, 32 + 4 * virtual, (there, here))
    return found


def _act(
    build: _Builder,
    rank: int,
    action: Action,
    messages: dict[tuple[str, int, int], Comm],
    amounts: list[float],
    chunks: int,
    backward: int,
) -> None:
    """Adds a phase: its message, its work (`backward` times that of a forward pass), and what it sends."""
    phase, virtual, m = action
    program = build.programs[rank]
    inbound = messages.get(action)
    program += [Start(inbound), Wait(inbound)] if inbound is not None else []
    share = 0.97 / len(amounts) / chunks / 3 * (backward if phase == "B" else 1)
    build.work(rank, share, stage=virtual % STAGES, amount=amounts[m])
    outbound = messages.get((phase, virtual + (1 if phase == "F" else -1), m))
    program += [Start(outbound)] if outbound is not None else []


TOPOLOGIES: dict[str, Callable[[Shape, Faults], Job]] = {
    "data": data_parallel,
    "sharded": sharded,
    "tensor": tensor_parallel,
    "experts": experts,
    "pipeline": pipeline,
    "megatron": megatron,
    "interleaved": interleaved,
    "zero_bubble": zero_bubble,
}
