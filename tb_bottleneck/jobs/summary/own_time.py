"""The operations and process groups of a rank, and its own time, which is the time without waiting for other ranks."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import Spans, merge, subtract, union
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.jobs.summary.rank_summary import OWN_REGIMES, Communications, Operation, Own, Points
from tb_bottleneck.knowledge.catalogue import group_annotations, kind_of_description
from tb_bottleneck.trace.columns.messages import Message
from tb_bottleneck.trace.header import MAX_GROUPS, MAX_RANKS, Header, ProcessGroup
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Bools, Ints, Table, column

# The order matters, because "reducescatter" also contains "reduce", and "allgather" contains "gather". Examples of
# names: record_param_comms has "allreduce", "_allgather_base", "reduce_scatter_tensor_coalesced"; annotations have
# "nccl:all_reduce", "gloo:all_gather"; kernels have "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
# (torch/csrc/distributed/c10d, NCCL src/device).
_WORDS = (
    ("allreduce", Operation.ALL_REDUCE),
    ("reducescatter", Operation.REDUCE_SCATTER),
    ("allgather", Operation.ALL_GATHER),
    ("alltoall", Operation.ALL_TO_ALL),
    ("broadcast", Operation.BROADCAST),
    ("barrier", Operation.BARRIER),
    ("sendrecv", Operation.OTHER),
    ("gather", Operation.GATHER),
    ("scatter", Operation.SCATTER),
    ("reduce", Operation.REDUCE),
    ("send", Operation.SEND),
    ("recv", Operation.RECV),
)
_PEER = re.compile(r"(\d{1,8})\s*(->|<-)\s*(\d{1,8})", re.ASCII)


def operation_of(name: str) -> Operation:
    """Returns the type of communication that `name` contains, or OTHER. `name` is the name of an operator, annotation
    or kernel of torch, NCCL or Gloo, such as "nccl:all_reduce"."""
    plain = name.lower().replace("_", "")
    return next((operation for word, operation in _WORDS if word in plain), Operation.OTHER)


def peer_in(name: str) -> int:
    """Returns the other rank in the name of a message, which is 1 in `nccl:send 0->1` and 0 in `nccl:recv 1<-0`; -1 if
    the name has no ranks."""
    match = _PEER.search(name)
    return int(match[3]) if match else -1


UNNAMED = ProcessGroup("", "", (), 0)
"""The group of collectives that do not name their group."""

_RANK = re.compile(r"\d{1,8}", re.ASCII)


class GroupTable:
    """Collects the process groups of one rank in order of first use, from the header of the trace and from its
    collectives. A group is identified by its row, its position in this order."""

    def __init__(self, header: Header) -> None:
        self._header = {group.name: group for group in header.groups}
        self._row_of: dict[str, int] = {}
        self._groups: list[ProcessGroup] = []
        self._served: list[Counter[str]] = []

    def unnamed(self) -> int:
        """Returns the row of UNNAMED, the group of collectives that do not name their group."""
        return self._row("", UNNAMED)

    def row_of(self, message: Message) -> int:
        """Returns the row of the group of `message`, which is added if it is new.

        The list of ranks in the header is used if there is one, because the list in the message may be cut.
        """
        if not message.group and not message.ranks:
            return self.unnamed()
        key = message.group or message.ranks
        if key in self._row_of:
            return self._row_of[key]
        known = self._header.get(message.group)
        ranks = known.ranks if known is not None and known.ranks else ranks_in(message.ranks)
        size = message.size if message.size > 0 else known.size if known is not None else len(ranks)
        description = message.description or (known.description if known is not None else "")
        return self._row(key, ProcessGroup(message.group[:100], description[:100], ranks, size))

    def count(self, row: int, operation: Operation, annotation: str) -> None:
        """Counts a communication of the type `operation` in the group `row` that was launched inside `annotation`, the
        name of an annotation such as "FSDP::all_gather". The counts show the purpose of the group (see groups)."""
        name = operation.name.lower()
        serves = (
            text for prefix, names, text in group_annotations() if annotation.startswith(prefix) and name in names
        )
        self._served[row][next(serves, "")] += 1

    def groups(self) -> tuple[ProcessGroup, ...]:
        """Returns the process groups that were used, in the order of their first use.

        If a group's description does not show its kind, and most of its communications have the same purpose, for
        example "fsdp", this purpose is appended to the description.
        """
        return tuple(map(self._described, self._groups, self._served))

    @staticmethod
    def _described(group: ProcessGroup, served: Counter[str]) -> ProcessGroup:
        most, count = served.most_common(1)[0] if served else ("", 0)
        if not most or 2 * count <= served.total() or kind_of_description(group.description) is not None:
            return group
        return replace(group, description=f"{group.description} {most}".strip())

    def _row(self, key: str, group: ProcessGroup) -> int:
        """Returns the row of `group`, which `key` identifies, and adds the group if it is new. If there are already
        MAX_GROUPS groups, returns the row of UNNAMED instead, or 0."""
        if key not in self._row_of and len(self._groups) >= MAX_GROUPS:
            return self.unnamed() if "" in self._row_of else 0
        row = self._row_of.setdefault(key, len(self._groups))
        if row == len(self._groups):
            self._groups.append(group)
            self._served.append(Counter())
        return row


def ranks_in(text: str) -> tuple[int, ...]:
    """Returns the ranks in `text`, such as "[0, 1, 2]". Returns no ranks if the list is cut.

    Kineto cuts lists of over 30 ranks and appends "..." (libkineto/src/output_json.cpp, kTruncatLength).
    """
    return () if "..." in text else tuple(int(rank) for rank in _RANK.findall(text)[:MAX_RANKS])


# Rounding of the times of older recordings, which have microseconds.
TOLERANCE_NS = 2_000
# Times that were measured by events of two streams, as in logs of published jobs, differ by some microseconds.
# Therefore, work that needs a message may begin just before the recorded end of the message. This tolerance is a share
# of the duration of the message. Chosen.
TOLERANCE_SHARE = 0.02
# A collective of Gloo releases the waiting thread before its row ends: usually 0.1 ms, on a busy machine 1 ms before.
RELEASE_NS, RELEASE_SHARE = 2_000_000, 0.2


@dataclass(frozen=True, eq=False)
class Waits(Table):
    """Intervals in which a rank waits for a communication, in ns since the start of the window."""

    communication: Ints = column("row of communications", "what it waits for")
    start: Ints = column("ns", "begin")
    end: Ints = column("ns", "end of the communication")


def waits_of(recording: Recording, communications: Communications) -> Waits:
    """Returns the intervals in which the rank waits for one of `communications`.

    Only intervals of exposed communication (with no other work on the device) can be waits. In such an interval, the
    rank waits until the end of the last communication that ends in the interval, if the next work had been issued
    before this end, or if the host was blocked. If the next work was issued during the interval, the time before its
    launch is own time (no waiting), because the host kept the device idle.
    """
    begin = recording.steps.begin
    exposed = recording.owned_spans.of(Regime.COMMUNICATION)
    shifted = Spans(exposed.starts - begin, exposed.ends - begin)
    if not recording.on_device:
        return _host_waits(shifted, communications)
    last, until = _ends_in(shifted, communications)
    followed, issued = _following(recording, until + begin)
    waited = (last >= 0) & followed & (until > shifted.starts)
    start = np.clip(issued - begin, shifted.starts, until - 1)
    return Waits(last[waited], start[waited], until[waited])


def points_of(recording: Recording, communications: Communications, waits: Waits) -> Points:
    """Returns the points of a rank, which are the starts of `communications` and the ends of `waits`, with the own time
    (time without waiting) between them."""
    return points_between(communications, waits, _own(recording, union(waits.start, waits.end)))


def ends_with(communications: Communications, waits: Waits) -> Communications:
    """Returns `communications` with ends that are not later than the end of the rank's wait for them.

    A recorded end can be later, because a thread of Gloo may end its row after it has released the waiting thread.
    """
    end = communications.end.copy()
    np.minimum.at(end, waits.communication, waits.end)
    return replace(communications, end=np.maximum(end, communications.start + 1))


def points_between(communications: Communications, waits: Waits, own: Sequence[Spans]) -> Points:
    """Returns the points of a rank: the starts of `communications` and the ends of `waits`.

    `own` has the spans of own time (time without waiting) for each kind of Own, in its order. All times are in ns since
    the start of the window.
    """
    time = np.concatenate((communications.start, waits.end))
    row = np.concatenate((np.arange(len(communications)), waits.communication))
    resumes = np.repeat([0, 1], [len(communications), len(waits)])
    order = np.lexsort((row, -resumes, time))
    time = time[order]
    by_kind = (np.diff(spans.covered(np.zeros_like(time), time), prepend=0) for spans in own)
    return Points(time, row[order], resumes[order], *by_kind)


def _ends_in(exposed: Spans, communications: Communications) -> tuple[Ints, Ints]:
    """Returns for each interval in `exposed` the row of the communication that ends last in it, or -1, and the time (ns
    since the start of the window) until which the rank waits for this communication."""
    by_end = np.argsort(communications.end, kind="stable")
    starts, ends = communications.start[by_end], communications.end[by_end]
    if not len(ends):
        return np.full(len(exposed), -1), exposed.ends
    position = np.searchsorted(ends, exposed.ends + TOLERANCE_NS, side="right") - 1
    exact = (position >= 0) & (ends[np.maximum(position, 0)] >= exposed.ends - TOLERANCE_NS)
    following = np.minimum(position + 1, len(ends) - 1)
    tolerance = TOLERANCE_SHARE * (ends - starts)[following]
    late = ends[following] - exposed.ends
    early = (late >= 0) & (late <= tolerance) & ~exact
    position = np.where(early, following, position)
    end = ends[np.maximum(position, 0)]
    found = (position >= 0) & (end > exposed.starts)
    return np.where(found, by_end[np.maximum(position, 0)], -1), np.minimum(end, exposed.ends)


def _host_waits(exposed: Spans, communications: Communications) -> Waits:
    """Returns the waits for collectives that run on the host.

    The wait for a collective is the longest part of an interval in `exposed` that lies within the collective and ends
    with it or shortly before its end. In the other intervals, the rank had already continued; these intervals are own
    time (time without waiting).
    """
    start, end = communications.start, communications.end
    late = np.maximum(RELEASE_NS, ((end - start) * RELEASE_SHARE).astype(np.int64))
    first = np.searchsorted(exposed.ends, np.maximum(end - late, start), side="right")
    last = np.searchsorted(exposed.starts, end)
    waits: dict[tuple[int, int], int] = {}  # if a rank waits for several collectives at once, the last one counts
    for row in np.argsort(end, kind="stable").tolist():
        begins = np.maximum(exposed.starts[first[row] : last[row]], start[row])
        ends = np.minimum(exposed.ends[first[row] : last[row]], end[row])
        if len(begins) and (ends - begins).max() > 0:
            longest = int(np.argmax(ends - begins))
            waits[int(begins[longest]), int(ends[longest])] = row
    columns = np.array([(row, *span) for span, row in waits.items()], np.int64).reshape(-1, 3).T
    return Waits(*(np.ascontiguousarray(column) for column in columns))


def _following(recording: Recording, times: Ints) -> tuple[Bools, Ints]:
    """Returns for each end of a communication in `times` (ns on the trace's clock) whether the rank waited for it, and
    since when it could wait.

    The first value is True if the next operation of the device had been issued before this end, or if the host was
    blocked at this end. The second value is the time in ns at which the next operation was issued, or 0 if the host was
    blocked. Until this time, the host kept the device idle, whether or not the communication had ended.
    """
    ops, calls = recording.trace.device_ops, recording.trace.calls
    following = np.searchsorted(ops.start, times - TOLERANCE_NS)
    issued = ops.issued(calls)[np.minimum(following, len(ops) - 1)]
    blocked = calls.of(Role.WAIT)
    queued = (following < len(ops)) & (issued <= times)
    waiting = union(blocked.start, blocked.end).contains(times - 1)  # a call may end at the same nanosecond
    return queued | waiting, np.where(waiting, 0, issued)


def _own(recording: Recording, waits: Spans) -> list[Spans]:
    """Returns the spans of own time (time without waiting) for each kind of Own, in its order. The spans in `waits` are
    excluded. All times are in ns since the start of the window."""
    spans = {own: merge(*map(recording.owned_spans.of, regimes)) for own, regimes in OWN_REGIMES.items()}
    begin = recording.steps.begin
    return [subtract(Spans(spans[own].starts - begin, spans[own].ends - begin), waits) for own in Own]
