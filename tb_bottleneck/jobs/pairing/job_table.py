"""The communications of all ranks in one table, with process groups numbered across the ranks."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_bottleneck.jobs.summary.rank_summary import Communications, RankSummary
from tb_bottleneck.trace.header import ProcessGroup
from tb_bottleneck.trace.table import Ints, Table, column


@dataclass(frozen=True, eq=False)
class JobRows(Table):
    """The communications of all ranks, sorted by rank, then by start."""

    rank: Ints = column("row of ranks", "position of the rank among the recorded ones")
    step: Ints = column("count", "number of the step, or its position if steps are not numbered")
    group: Ints = column("row of groups", "process group of the job")
    operation: Ints = column("Operation", "what is communicated how")
    order: Ints = column("count", "position in the order of issue on the rank")
    sequence: Ints = column("count", "Seq of the group; -1 if not recorded")
    key: Ints = column("id", "Comms Id; 0 if not recorded")
    bytes: Ints = column("bytes", "size of the larger side")
    peer: Ints = column("rank", "number of the other rank of a message; -1 if not recorded")
    skew: Ints = column("per mille", "largest part of an all-to-all / mean part - 1")
    repeated: Ints = column("flag", "1 if a later exchange before the optimizer step has the same gradients, too")
    start: Ints = column("ns", "arrival, on the clock of the rank's host, since 1970")
    end: Ints = column("ns", "end, on the same clock")


@dataclass(frozen=True, eq=False)
class JobTable:
    """The recorded ranks of a job and their communications. A row is one communication of one rank.

    `summaries` are in order of rank; the position of a rank is its index there. `groups` are the process groups of the
    job. The rank at position i has the rows first[i] to first[i + 1] - 1.
    """

    summaries: tuple[RankSummary, ...]
    groups: tuple[ProcessGroup, ...]
    rows: JobRows
    first: Ints

    @property
    def ranks(self) -> tuple[int, ...]:
        """The numbers of the recorded ranks, in ascending order."""
        return tuple(summary.facts.rank for summary in self.summaries)

    @property
    def world_size(self) -> int:
        """The number of all ranks of the job, including ranks that were not recorded."""
        return self.summaries[0].facts.world_size

    @cached_property
    def numbered(self) -> bool:
        """True if the steps of all ranks are numbered."""
        return all(summary.numbers for summary in self.summaries)


def job_table(summaries: Sequence[RankSummary]) -> JobTable:
    """Returns the table of the job with the ranks of `summaries`, which may be in any order. Each rank must occur only
    once."""
    ordered = tuple(sorted(summaries, key=lambda summary: summary.facts.rank))
    groups, rows_of = _joined_groups(ordered)
    numbered = all(summary.numbers for summary in ordered)
    parts = [
        _rows(position, summary, rows, numbered)
        for position, (summary, rows) in enumerate(zip(ordered, rows_of, strict=True))
    ]
    first = np.cumsum([0, *(len(summary.communications) for summary in ordered)])
    return JobTable(ordered, groups, JobRows(*(np.concatenate(columns) for columns in zip(*parts, strict=True))), first)


def _joined_groups(summaries: Sequence[RankSummary]) -> tuple[tuple[ProcessGroup, ...], list[Ints]]:
    """Returns the process groups of the job, and one array per summary that has the index in these process groups of
    each group of the rank.

    A group is identified by its name, or by its name and ranks if groups of the same name have different ranks. If no
    rank recorded the complete list of ranks of a group, the group consists of the recorded ranks that use it.
    """
    lists: defaultdict[str, set[tuple[int, ...]]] = defaultdict(set)
    for summary in summaries:
        for group in summary.groups:
            lists[group.name] |= {group.ranks} if group.ranks else set()
    row_of: dict[tuple[str, tuple[int, ...]], int] = {}
    found: list[ProcessGroup] = []
    users: list[list[int]] = []
    rows: list[Ints] = []
    for summary in summaries:
        mine = []
        for group in summary.groups:
            ambiguous = len(lists[group.name]) > 1
            row = row_of.setdefault((group.name, group.ranks if ambiguous else ()), len(found))
            if row == len(found):
                ranks = group.ranks if ambiguous else next(iter(lists[group.name]), ())
                found.append(_with(group, ranks))
                users.append([])
            users[row].append(summary.facts.rank)
            mine.append(row)
        rows.append(np.array(mine, np.int64))
    complete = (
        group if group.ranks else _with(group, tuple(sorted(set(ranks))))
        for group, ranks in zip(found, users, strict=True)
    )
    return tuple(complete), rows


def _with(group: ProcessGroup, ranks: tuple[int, ...]) -> ProcessGroup:
    return ProcessGroup(group.name, group.description, ranks, group.size)


def _rows(position: int, summary: RankSummary, groups: Ints, numbered: bool) -> tuple[Ints, ...]:
    """Returns the columns of JobRows for the rank at `position`. `groups` has the row in the job's groups of each group
    of the rank; `numbered` is True if the steps of all ranks are numbered."""
    own: Communications = summary.communications
    begin = summary.facts.begin_ns
    step = np.array(summary.numbers, np.int64)[own.step] if numbered and len(own) else own.step
    return (
        np.full(len(own), position),
        step,
        groups[own.group] if len(own) else own.group,
        own.operation,
        own.order,
        own.sequence,
        own.key,
        own.bytes,
        own.peer,
        own.skew,
        own.repeated,
        own.start + begin,
        own.end + begin,
    )
