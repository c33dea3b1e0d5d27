"""The table of runtime and driver calls of the host, with what each one does."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from tb_bottleneck.knowledge.catalogue import call_patterns, first_match
from tb_bottleneck.trace.events import Events
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Ints, Table, column


class Role(IntEnum):
    """What a call does; the words are those of knowledge/calls.toml."""

    OTHER = 0
    LAUNCH = 1
    COPY = 2
    WAIT = 3
    ALLOCATE = 4
    INITIALIZE = 5
    FILL = 6


@dataclass(frozen=True, eq=False)
class Calls(Table):
    """One row per call, sorted by start."""

    start: Ints = column("ns", "begin of the call")
    end: Ints = column("ns", "return of the call")
    role: Ints = column("Role", "what the call does")
    name: Ints = column("row of names", "the function")
    thread: Ints = column("row of threads", "the calling thread")
    correlation: Ints = column("id", "ties the call to its device work; 0 where not linked")

    def of(self, *roles: Role) -> "Calls":
        """The rows with one of these roles."""
        return self.take(np.isin(self.role, roles))


def calls_of(events: Events, names: tuple[str, ...]) -> Calls:
    """The calls among the events."""
    rows = np.flatnonzero(events.kind == Kind.CALL)
    name_of = events.name[rows]
    roles = np.zeros(len(names), np.int64)
    for name in np.flatnonzero(np.bincount(name_of, minlength=len(names))).tolist():
        word = first_match(call_patterns(), names[name])
        roles[name] = Role[word.upper()] if word else Role.OTHER
    return Calls(
        start=events.start[rows],
        end=events.end[rows],
        role=roles[name_of],
        name=name_of,
        thread=events.thread[rows],
        correlation=events.correlation[rows],
    )
