"""The table of the host's calls of the CUDA or HIP runtime and driver, with the role of each call."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from tb_bottleneck.knowledge.catalogue import call_patterns, first_match
from tb_bottleneck.trace.columns.packed_column import packed
from tb_bottleneck.trace.events import Events
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Ints, Table, column


class Role(IntEnum):
    """What a call does: its role. knowledge/calls.toml uses these names in lower case."""

    OTHER = 0
    LAUNCH = 1
    COPY = 2
    WAIT = 3
    ALLOCATE = 4
    INITIALIZE = 5
    FILL = 6


@dataclass(frozen=True, eq=False)
class Calls(Table):
    """The host's calls of the CUDA or HIP runtime and driver. There is one row per call, sorted by start."""

    start: Ints = column("ns", "start of the call")
    end: Ints = column("ns", "return of the call")
    role: Ints = column("Role", "role of the call")
    name: Ints = column("row of names", "the function")
    thread: Ints = column("row of threads", "the calling thread")
    correlation: Ints = column("id", "links the call to its device work; 0 if not linked")

    def of(self, *roles: Role) -> "Calls":
        """Returns the rows with one of these roles."""
        return self.take(np.isin(self.role, roles))


def calls_of(events: Events, names: tuple[str, ...]) -> Calls:
    """Returns the table of the runtime and driver calls in `events`. `names` are the interned names of the events."""
    rows = np.flatnonzero(events.kind == Kind.CALL)
    name_of = events.name[rows]
    roles = np.zeros(len(names), np.int64)
    for name in np.flatnonzero(np.bincount(name_of, minlength=len(names))).tolist():
        word = first_match(call_patterns(), names[name])
        roles[name] = Role[word.upper()] if word else Role.OTHER
    return Calls(
        start=events.start[rows],
        end=events.end[rows],
        role=packed(roles[name_of]),
        name=packed(name_of),
        thread=packed(events.thread[rows]),
        correlation=packed(events.correlation[rows]),
    )
