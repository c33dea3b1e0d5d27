"""What happened in a simulated run: host rows, device operations, and what the host was busy with."""

from dataclasses import dataclass
from typing import NamedTuple


class Row(NamedTuple):
    """A host row: kind is op, annotation, python or call. `op` is the id of the innermost operator, 0 where none."""

    kind: str
    name: str
    thread: str
    begin: int
    end: int
    id: int
    op: int


class Op(NamedTuple):
    """A device operation. `issued`: when the host had it launched; `late`: it began when it did because of that.

    `phase`: what the host was in the middle of when it launched this, where that is more than dispatching.
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
    """What happened. `doings` are (begin, end, doing) of the host, without holes and in order."""

    rows: tuple[Row, ...]
    ops: tuple[Op, ...]
    doings: tuple[tuple[int, int, str], ...]
