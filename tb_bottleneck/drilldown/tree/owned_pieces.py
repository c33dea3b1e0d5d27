"""The time of the window in pieces, each with the regime that owns it and the event on the host that causes it.

Busy time of the device is caused by the call that launched the running operation. Idle time is caused by the event that
the host runs at this time. After the call that launches the next operation has returned, idle time is caused by this
call.
"""

import numpy as np

from tb_bottleneck.attribution.device_attribution import ops_by_regime
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.arrays import distinct_values
from tb_bottleneck.base.intervals import overlapping
from tb_bottleneck.base.measure import Record
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.drilldown.tree.host_rows import NO_TIME, HostRows, OwnTime
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import innermost
from tb_bottleneck.trace.table import Bools, Ints
from tb_bottleneck.trace.trace import Trace

UNMAPPED, NOTHING = -2, -1
"""Values of `Pieces.row`. UNMAPPED: the event that causes the time is not known. NOTHING: no event of the host was
recorded at this time."""


class Pieces(Record, frozen=True, eq=False):
    """Parts of the window. Arrays have one element per part.

    `ns` is the length of the part. `regime` is the regime that owns the part, as a row of REGIMES. `row` is the event
    of the host that causes the part, or UNMAPPED or NOTHING. `op` is the device operation that runs, or -1 if the
    device is idle.
    """

    ns: Ints
    regime: Ints
    row: Ints
    op: Ints


class _Spans(Record, frozen=True, eq=False):
    """Sorted, disjoint time intervals in ns, each with the regime that owns it, as a row of REGIMES."""

    begin: Ints
    end: Ints
    regime: Ints

    def cut(self, begin: Ints, end: Ints) -> tuple["_Spans", Ints]:
        """Returns the parts of these spans inside the sorted, disjoint ranges [begin[i], end[i]), and the index i of
        each part."""
        mine, other = overlapping(self.begin, self.end, begin, end)
        start, stop = np.maximum(self.begin[mine], begin[other]), np.minimum(self.end[mine], end[other])
        return _Spans(start, stop, self.regime[mine]), other

    def without(self, begin: Ints, end: Ints) -> "_Spans":
        """Returns the parts of these spans outside the sorted, disjoint ranges [begin[i], end[i])."""
        low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
        return self.cut(np.append(low, end), np.append(begin, high))[0]

    def take(self, rows: Ints | Bools) -> "_Spans":
        """Returns the spans that the index array or mask `rows` selects."""
        return _Spans(self.begin[rows], self.end[rows], self.regime[rows])


def owned_pieces(recording: Recording, host: HostRows) -> Pieces:
    """Returns the parts of the recording's window. For each regime, the lengths of its parts sum to the time that the
    regime has in the report."""
    owned = recording.owned_spans
    spans = _Spans(owned.start, owned.end, owned.regime)
    main = -1 if recording.host.main_thread is None else recording.host.main_thread
    if not recording.on_device:
        return _joined(_of_host(spans, np.full(len(spans.begin), main), main, host))
    launches = launching_rows(recording.trace)
    busy, idle = _busy(recording, spans, launches)
    return _joined([*busy, *_idle(recording, idle, launches, main, host)])


def launching_rows(trace: Trace) -> Ints:
    """Returns for each operation in `trace.device_ops` the event row of the call that launched it, or UNMAPPED."""
    ops, calls = trace.device_ops, trace.rows(Kind.CALL)
    return np.where(ops.launched, calls[ops.call], UNMAPPED) if len(calls) else np.full(len(ops), UNMAPPED)


def _busy(recording: Recording, spans: _Spans, launches: Ints) -> tuple[list[Pieces], _Spans]:
    """Returns the parts of `spans` in which the device works, and the rest of `spans`.

    `launches` is the result of `launching_rows`.
    """
    ops = recording.trace.device_ops
    pieces, idle = [], []
    by_regime = ops_by_regime(ops, recording.kernel_bounds)
    for regime, rows in by_regime.items():
        own = np.flatnonzero(rows)
        running = _flat(ops.start[own], ops.end[own])
        mine = spans.take(spans.regime == REGIMES.index(regime))
        part, which = mine.cut(running.begin, running.end)
        op = own[running.row[which]]
        pieces.append(Pieces(part.end - part.begin, part.regime, launches[op], op))
        idle.append(mine.without(running.begin, running.end))
    never_busy = ~np.isin(spans.regime, [REGIMES.index(regime) for regime in by_regime])
    return pieces, _sorted([*idle, spans.take(never_busy)])


def _flat(start: Ints, end: Ints) -> OwnTime:
    """Returns the time in which at least one row runs, with the row that began last. If rows overlap, only this row
    counts. `start` and `end` (ns) have one element per row, sorted by start."""
    edges = distinct_values(np.concatenate((start, end)))
    runs, row = innermost(start, end, edges[:-1]) if len(edges) else (np.zeros(0, np.bool_), NO_TIME.row)
    return OwnTime(edges[:-1][runs], edges[1:][runs], row[runs]) if len(edges) else NO_TIME


def _sorted(parts: list[_Spans]) -> _Spans:
    columns = [np.concatenate(column) for column in zip(*((p.begin, p.end, p.regime) for p in parts), strict=True)]
    return _Spans(*columns).take(np.argsort(columns[0], kind="stable"))


def _idle(recording: Recording, spans: _Spans, launches: Ints, main: int, host: HostRows) -> list[Pieces]:
    """Returns the parts of `spans` in which the device is idle.

    `launches` is the result of `launching_rows`. `main` is the main thread (row of the trace's threads), or -1.
    """
    ops, gaps = recording.trace.device_ops, recording.gaps
    until = np.minimum(gaps.begin + gaps.by_activity.total(), gaps.end)
    by_host, gap = spans.cut(gaps.begin, until)
    late, late_gap = spans.cut(until, gaps.end)
    following = np.minimum(np.searchsorted(ops.start, gaps.end[late_gap]), len(ops) - 1)
    known = (ops.start[following] == gaps.end[late_gap]) & (late.regime != REGIMES.index(Regime.UNEXPLAINED))
    none = np.full(len(known), -1)
    waiting = Pieces(late.end - late.begin, late.regime, np.where(known, launches[following], UNMAPPED), none)
    return [waiting, *_of_host(by_host, gaps.thread[gap], main, host)]


def _of_host(spans: _Spans, thread: Ints, main: int, host: HostRows) -> list[Pieces]:
    """Returns the parts of `spans`, each with the innermost event that runs during this part on the thread of the span.

    `thread` has the thread of each span. If this thread runs nothing, the event on the thread `main` is used. If `main`
    runs nothing either, the event is NOTHING.
    """
    pieces, rest = [], []
    for number in distinct_values(thread).tolist():
        part, others = _running(spans.take(thread == number), host.own.get(number, NO_TIME))
        pieces.append(part)
        rest.append(others)
    if not rest:
        return []
    part, others = _running(_sorted(rest), host.own.get(main, NO_TIME))
    nothing = np.full(len(others.begin), NOTHING)
    return [*pieces, part, Pieces(others.end - others.begin, others.regime, nothing, np.full(len(nothing), -1))]


def _running(spans: _Spans, own: OwnTime) -> tuple[Pieces, _Spans]:
    """Returns the parts of `spans` in which an event in `own` runs, and the rest of `spans`."""
    part, which = spans.cut(own.begin, own.end)
    pieces = Pieces(part.end - part.begin, part.regime, own.row[which], np.full(len(which), -1))
    return pieces, spans.without(own.begin, own.end)


def _joined(pieces: list[Pieces]) -> Pieces:
    columns = zip(*((p.ns, p.regime, p.row, p.op) for p in pieces), strict=True)
    return Pieces(*(np.concatenate(column) for column in columns)) if pieces else Pieces(*[np.empty(0, np.int64)] * 4)
