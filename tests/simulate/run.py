"""The events of a simulated run: host rows, device operations, and the host's activity over time."""

from dataclasses import dataclass
from typing import NamedTuple


class Row(NamedTuple):
    """A host row. `kind` is op, annotation, python or call; `op` is the id of the innermost operator, or 0."""

    kind: str
    name: str
    thread: str
    begin: int
    end: int
    id: int
    op: int


class Op(NamedTuple):
    """A device operation. `issued` is the time of the launch; `late` is True if the launch determined the begin.

    `phase` is the host's activity during the launch if it was more than dispatching.
    """

    name: str
    work: str
    device: int
    stream: int
    begin: int
    end: int
    issued: int
    late: bool
    stall: int
    blocks: int
    bytes: int
    call: int
    op: int
    phase: str = ""


@dataclass(frozen=True)
class Run:
    """All events. `activities` are (begin, end, activity) of the host, contiguous and in order."""

    rows: tuple[Row, ...]
    ops: tuple[Op, ...]
    activities: tuple[tuple[int, int, str], ...]
