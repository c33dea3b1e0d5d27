"""The program of each rank of a simulated job: work, starts of communications, and waits for them."""

from dataclasses import dataclass, field

KINDS = ("device", "input", "host", "interruption", "collection")
"""Kinds of own time. A collection is an interruption whose rows name the garbage collector."""


@dataclass
class Comm:
    """One collective or message; `wire` is its transfer time in ns. The sender of a message is the first of `ranks`."""

    operation: str
    group: str
    ranks: tuple[int, ...]
    bytes: int
    wire: float
    lane: int = 20
    splits: dict[int, tuple[int, ...]] = field(default_factory=dict)
    end_jitter: float = 0.0
    repeated: bool = False  # a later one before the optimizer step has the same gradients, too


@dataclass
class Work:
    """Own time in ns. `elements` is the amount of work, which the shapes show; `slow` is the factor of slow kernels."""

    kind: str
    ns: float
    elements: int = 0
    slow: float = 1.0


@dataclass
class Start:
    """Issues a communication."""

    comm: Comm


@dataclass
class Wait:
    """Continues after a communication."""

    comm: Comm


@dataclass
class Mark:
    """Begins a step."""

    number: int


Item = Work | Start | Wait | Mark


@dataclass(frozen=True)
class Group:
    """A process group."""

    name: str
    description: str
    ranks: tuple[int, ...]


@dataclass
class Job:
    """The programs of all ranks. `hosts` is the host of each rank, `skew` the offset of each host's clock in ns."""

    programs: list[list[Item]]
    groups: list[Group]
    hosts: list[int]
    skew: list[int] = field(default_factory=list)
    sequences: bool = True
    ids: bool = False

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.programs)
