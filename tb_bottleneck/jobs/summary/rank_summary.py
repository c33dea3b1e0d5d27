"""The summary of the recording of one rank, from which a job is analysed. The summary contains no names of hosts,
users, paths or kernels."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.trace.header import ProcessGroup
from tb_bottleneck.trace.table import Floats, Ints, Table, column


class Operation(IntEnum):
    """The type of a communication, such as an all-reduce. SEND and RECV are messages between two ranks."""

    OTHER = 0
    ALL_REDUCE = 1
    ALL_GATHER = 2
    REDUCE_SCATTER = 3
    ALL_TO_ALL = 4
    BROADCAST = 5
    REDUCE = 6
    GATHER = 7
    SCATTER = 8
    BARRIER = 9
    SEND = 10
    RECV = 11

    @property
    def synchronises(self) -> bool:
        """True if no rank can complete the operation before the last rank arrives."""
        return self in _SYNCHRONISING

    @property
    def point_to_point(self) -> bool:
        """True for a message between two ranks."""
        return self in (Operation.SEND, Operation.RECV)


# In an all-to-all, a rank need not wait for another rank if the part between them is empty. Pairing checks that no rank
# ends before the last rank begins (see contradicted).
_SYNCHRONISING = frozenset(
    {Operation.ALL_REDUCE, Operation.ALL_GATHER, Operation.REDUCE_SCATTER, Operation.ALL_TO_ALL, Operation.BARRIER}
)


class Own(IntEnum):
    """The kinds of own time. Own time is the time in which a rank does not wait for a communication; the kind says what
    the rank does in this time."""

    DEVICE = 0
    INPUT = 1
    HOST = 2
    INTERRUPTION = 3
    OTHER = 4


OWN_REGIMES = {
    Own.DEVICE: (Regime.COMPUTE, Regime.MEMORY, Regime.UNDERFILLED),
    Own.INPUT: (Regime.INPUT,),
    Own.HOST: (Regime.HOST, Regime.LAUNCH, Regime.SYNC, Regime.ALLOCATOR, Regime.TRANSFER, Regime.COMMUNICATION),
    Own.INTERRUPTION: (Regime.INTERRUPTION,),
    Own.OTHER: (Regime.UNEXPLAINED,),
}
"""The regimes of each kind of own time (time without waiting). HOST includes exposed communication for which the rank
does not wait: in this time, the device does no other work because the host has launched none."""


@dataclass(frozen=True, eq=False)
class Communications(Table):
    """The collectives and messages of one rank in the judged steps, sorted by start."""

    step: Ints = column("count", "position of the step in which it was issued")
    order: Ints = column("count", "position in the order of issue")
    group: Ints = column("row of groups", "process group")
    operation: Ints = column("Operation", "what is communicated how")
    sequence: Ints = column("count", "Seq of the group; -1 if not recorded")
    key: Ints = column("id", "Comms Id as a signed number; 0 if not recorded")
    bytes: Ints = column("bytes", "size of the larger side; 0 if not recorded")
    peer: Ints = column("rank", "the other rank of a message; -1 if not recorded")
    lane: Ints = column("id", "stream or thread that runs it")
    skew: Ints = column("per mille", "largest part of an all-to-all / mean part - 1; 0 if not recorded")
    repeated: Ints = column("flag", "1 if a later exchange before the optimizer step has the same gradients, too")
    start: Ints = column("ns", "arrival, since the begin of the window")
    end: Ints = column("ns", "end, since the begin of the window")


@dataclass(frozen=True, eq=False)
class Points(Table):
    """The points of a rank, in order of time. A point is the start of a communication, or the end of a wait for one.

    `device`, `input`, `host`, `interruption` and `other` are the own time (time without waiting) between the previous
    point and this point.
    """

    time: Ints = column("ns", "since the begin of the window")
    communication: Ints = column("row of communications", "which one starts, or was waited for")
    resumes: Ints = column("flag", "1 if the rank waited for the end, 0 if the communication starts")
    device: Ints = column("ns", "own time: the device computes")
    input: Ints = column("ns", "own time: waiting for data")
    host: Ints = column("ns", "own time: the host keeps the device idle")
    interruption: Ints = column("ns", "own time: checkpoints, logging, evaluation, garbage collection")
    other: Ints = column("ns", "own time: not explained")


@dataclass(frozen=True, eq=False)
class StepWork(Table):
    """The amount of work of each step. If equal amounts take different times, a device or a host is slow."""

    elements: Ints = column("count", "elements of the first inputs of all operators; 0 if not recorded")
    uploaded: Ints = column("bytes", "copied from host to device")
    collected: Ints = column("ns", "garbage collection, as recorded")


@dataclass(frozen=True, eq=False)
class KernelTimes(Table):
    """The kernels of a rank that take the most time, costliest first. Hashes replace their names."""

    name: Ints = column("id", "hash of the name")
    count: Ints = column("count", "calls in the window")
    median: Ints = column("ns", "median duration")
    blocks: Ints = column("count", "median number of thread blocks; 0 if not recorded")


@dataclass(frozen=True)
class RankFacts:
    """Single values about a rank.

    `host` is a hash of the host's name, `local_size` the number of ranks per host (0 if not recorded), `backend` that
    of torch.distributed, and `device` the name of the device (empty on the CPU). `begin_ns` is the start of the window
    in ns since 1970, on the clock of the host. `machine` has the figures of monitor/machine_check.py, if the ranks
    measured their machines.
    """

    rank: int
    world_size: int
    host: str
    local_size: int
    backend: str
    device: str
    begin_ns: int
    marked: bool  # steps are marked by prof.step()
    lost: bool  # the recording is damaged or truncated
    cut: int = 0  # judged steps that are left out to limit the size of the summary
    attentions: int = 0  # gradients of attention per step: layers times microbatches; 0 if not recorded
    machine: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class RankSummary:
    """The summary of the recording of one rank.

    `groups` are the process groups that the rank uses. `edges` are the starts of the steps and the end of the last one,
    in ns since the start of the window. `numbers` are the numbers of the steps, empty if they are not numbered.
    `account` has the time in ns by step and regime, of shape (steps, regimes), in the order of REGIMES.
    """

    facts: RankFacts
    groups: tuple[ProcessGroup, ...]
    numbers: tuple[int, ...]
    edges: Ints
    account: Ints
    work: StepWork
    kernels: KernelTimes
    communications: Communications
    points: Points

    @property
    def steps(self) -> int:
        """The number of judged steps."""
        return len(self.edges) - 1

    @property
    def own(self) -> Floats:
        """The own time (time without waiting) between the previous point and each point in ns, of shape (points, kinds
        of Own)."""
        points = self.points
        parts = (points.device, points.input, points.host, points.interruption, points.other)
        return np.stack(parts, axis=1).astype(np.float64)
