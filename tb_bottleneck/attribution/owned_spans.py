"""The account as a timeline: who owns which stretch of the window.

The sums are the account's own. Where a wait is charged with dispatching behind it (attribution/idle_gaps.py), the
first such time of each gap is the wait's.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.account import OWN_PAUSE_NS
from tb_bottleneck.attribution.cpu_account import DISPATCH_SIZED_NS, FREES_GRADIENTS, REGIME_OF_ACTIVITY
from tb_bottleneck.attribution.cpu_collectives import host_collective_time
from tb_bottleneck.attribution.cpu_operators import work_by_regime
from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.idle_gaps import IdleGaps
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.intervals import EMPTY, Spans, clip, intersect, merge, subtract, union
from tb_bottleneck.regime import REGIMES, Regime
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.table import Ints, Table, column

Claim = tuple[Regime, Ints, Ints]  # a regime, begins, ends


@dataclass(frozen=True, eq=False)
class OwnedSpans(Table):
    """Stretches of the window, sorted, disjoint, each with its owner."""

    start: Ints = column("ns", "begin")
    end: Ints = column("ns", "end")
    regime: Ints = column("row of REGIMES", "the owner")

    @classmethod
    def none(cls) -> "OwnedSpans":
        """No stretch at all."""
        return cls(*(np.empty(0, np.int64) for _ in range(3)))

    def of(self, regime: Regime) -> Spans:
        """The stretches of one regime."""
        rows = self.regime == REGIMES.index(regime)
        return union(self.start[rows], self.end[rows])


def owned_spans_of(recording: Recording) -> OwnedSpans:
    """Who owns each stretch of the recording's window."""
    claims = list(_with_collectives(recording, _on_device(recording) if recording.on_device else _on_cpu(recording)))
    start = np.concatenate([begin for _, begin, _ in claims])
    end = np.concatenate([end for _, _, end in claims])
    regime = np.repeat([REGIMES.index(name) for name, _, _ in claims], [len(begin) for _, begin, _ in claims])
    rows = np.flatnonzero(end > start)
    rows = rows[np.argsort(start[rows], kind="stable")]
    return OwnedSpans(start[rows], end[rows], regime[rows].astype(np.int64))


def _with_collectives(recording: Recording, claims: Iterator[Claim]) -> Iterator[Claim]:
    """The claims, with what the host spends on collectives taken from `host` (attribution/cpu_collectives.py)."""
    for regime, begins, ends in claims:
        talking = host_collective_time(recording.trace, union(begins, ends)) if regime == Regime.HOST else EMPTY
        yield Regime.COMMUNICATION, talking.starts, talking.ends
        rest = subtract(union(begins, ends), talking) if len(talking) else Spans(begins, ends)
        yield regime, rest.starts, rest.ends


def _on_device(recording: Recording) -> Iterator[Claim]:
    for owner, spans in recording.busy.items():
        yield owner, spans.starts, spans.ends
    gaps = recording.gaps
    late = gaps.begin + gaps.by_activity.sum(axis=1)  # up to here the host was late; behind it, the launch itself
    begun = np.minimum(late + gaps.latency, gaps.end)
    waiting = gaps.queued == 0
    yield Regime.UNEXPLAINED, begun[waiting], gaps.end[waiting]
    own = ~waiting & (gaps.queued < OWN_PAUSE_NS)
    yield Regime.UNDERFILLED, gaps.begin[own], gaps.end[own]
    yield Regime.UNEXPLAINED, gaps.begin[~waiting & ~own], gaps.end[~waiting & ~own]
    dispatching = [(late[waiting], begun[waiting])]
    for activity, spans in _by_activity(recording, late):
        if activity is Activity.DISPATCH:
            dispatching.append((spans.starts, spans.ends))
        else:
            yield REGIME_OF_ACTIVITY[activity], spans.starts, spans.ends
    begins, ends = (np.concatenate(times) for times in zip(*dispatching, strict=True))
    yield from _charged(gaps, begins, ends)


def _by_activity(recording: Recording, late: Ints) -> Iterator[tuple[Activity, Spans]]:
    """What the launching thread of each gap did in it, up to `late`."""
    gaps = recording.gaps
    for thread in np.unique(gaps.thread).tolist():
        mine = gaps.thread == thread
        idle = union(gaps.begin[mine], late[mine])
        if thread >= 0:
            for activity, spans in recording.host.activities(thread).items():
                if activity is not Activity.OTHER:
                    inside = intersect(idle, spans)
                    idle = subtract(idle, spans)
                    yield activity, inside
        yield Activity.OTHER, idle


def _charged(gaps: IdleGaps, begins: Ints, ends: Ints) -> Iterator[Claim]:
    """Dispatching and latency, the first of it in each gap given to the wait that caused it."""
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], ends[order]
    gap = np.searchsorted(gaps.begin, begins, side="right") - 1
    length = np.maximum(ends - begins, 0)
    before = np.concatenate(([0], np.cumsum(length)))[:-1]
    first = np.searchsorted(gap, gap, side="left")
    taken = np.clip(gaps.sync_bubble[gap] - (before - before[first]), 0, length) if len(gap) else length
    yield Regime.SYNC, begins, begins + taken
    yield Regime.LAUNCH, begins + taken, begins + length


def _on_cpu(recording: Recording) -> Iterator[Claim]:
    """The main thread's timeline: what it does, and where it dispatches, the operators that are long themselves."""
    steps, thread = recording.steps, recording.host.main_thread
    window = Spans(np.array([steps.begin]), np.array([steps.end]))
    if thread is None:
        yield Regime.UNEXPLAINED, window.starts, window.ends
        return
    rest = window
    for activity, spans in recording.host.activities(thread).items():
        inside = clip(spans, steps.begin, steps.end)
        rest = subtract(rest, inside)
        if activity is Activity.DISPATCH:
            yield from _working(recording, thread, inside)
        else:
            yield REGIME_OF_ACTIVITY[activity], inside.starts, inside.ends
    yield Regime.HOST, rest.starts, rest.ends


def _working(recording: Recording, thread: int, dispatching: Spans) -> Iterator[Claim]:
    """The long operators' own time; the rest of `dispatching` is dispatching."""
    trace, rows = recording.trace, recording.trace.rows(Kind.CPU_OP, Kind.ANNOTATION)
    events = trace.events
    frees = name_matches(trace.names, events.name[rows], lambda name: name.startswith(FREES_GRADIENTS))
    rows = rows[(events.thread[rows] == thread) & (frees | (events.kind[rows] == Kind.CPU_OP))]
    nesting = nest(events.start[rows], events.end[rows])
    edges = np.unique(np.concatenate((events.start[rows], events.end[rows])))
    inside, innermost = nesting.innermost(edges[:-1])
    long = nesting.self_times() >= DISPATCH_SIZED_NS
    claimed = []
    for regime, owned in work_by_regime(trace, rows[long]).items():
        works = np.zeros(len(rows), np.bool_)
        works[long] = owned
        mine = inside & works[innermost]
        spans = intersect(union(edges[:-1][mine], edges[1:][mine]), dispatching)
        claimed.append(spans)
        yield regime, spans.starts, spans.ends
    launching = subtract(dispatching, merge(*claimed))
    yield Regime.LAUNCH, launching.starts, launching.ends
