"""Splits the time of one rank into waits for communications and its own work.

The rank waits in an interval of exposed communication until the last communication that ends in it, if work was queued
behind that communication or the host was blocked by it. Otherwise the device was idle because the host had launched
nothing yet, and the communication only ran meanwhile: that is the rank's own time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.intervals import Spans, merge, subtract, union
from tb_bottleneck.jobs.summary.rank_summary import OWN_REGIMES, Communications, Own, Points
from tb_bottleneck.regime import Regime
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Bools, Ints, Table, column

# Rounding of the times of older recordings, which have microseconds.
TOLERANCE_NS = 2_000
# A collective of Gloo releases the waiting thread before its row ends: usually 0.1 ms, on a busy machine 1 ms before.
RELEASE_NS, RELEASE_SHARE = 2_000_000, 0.2


@dataclass(frozen=True, eq=False)
class Waits(Table):
    """Intervals in which a rank waits, in ns since the begin of the window."""

    communication: Ints = column("row of communications", "what it waits for")
    start: Ints = column("ns", "begin")
    end: Ints = column("ns", "end of the communication")


def waits_of(recording: Recording, communications: Communications) -> Waits:
    """Returns the intervals in which a rank waits for a communication."""
    begin = recording.steps.begin
    exposed = recording.owned_spans.of(Regime.COMMUNICATION)
    shifted = Spans(exposed.starts - begin, exposed.ends - begin)
    if not recording.on_device:
        return _host_waits(shifted, communications)
    last, until = _ends_in(shifted, communications)
    waited = (last >= 0) & _is_followed(recording, until + begin)
    return Waits(last[waited], shifted.starts[waited], until[waited])


def points_of(recording: Recording, communications: Communications, waits: Waits) -> Points:
    """Returns the starts and the waits of a rank, with its own time in between."""
    return points_between(communications, waits, _own(recording, union(waits.start, waits.end)))


def ends_with(communications: Communications, waits: Waits) -> Communications:
    """Returns the communications, ended where their rank stops waiting for them.

    A thread of Gloo may leave its row some time after it has released the waiting thread.
    """
    end = communications.end.copy()
    np.minimum.at(end, waits.communication, waits.end)
    return replace(communications, end=np.maximum(end, communications.start + 1))


def points_between(communications: Communications, waits: Waits, own: Sequence[Spans]) -> Points:
    """Returns the points of a rank with these waits, and its own time by kind (Own), in ns since the window's begin."""
    time = np.concatenate((communications.start, waits.end))
    row = np.concatenate((np.arange(len(communications)), waits.communication))
    resumes = np.repeat([0, 1], [len(communications), len(waits)])
    order = np.lexsort((row, -resumes, time))
    time = time[order]
    by_kind = (np.diff(spans.covered(np.zeros_like(time), time), prepend=0) for spans in own)
    return Points(time, row[order], resumes[order], *by_kind)


def _ends_in(exposed: Spans, communications: Communications) -> tuple[Ints, Ints]:
    """Returns per interval: the communication that ends last in it, or -1, and until when the rank waits for it."""
    by_end = np.argsort(communications.end, kind="stable")
    ends = communications.end[by_end]
    position = np.searchsorted(ends, exposed.ends + TOLERANCE_NS, side="right") - 1
    if not len(ends):
        return np.full(len(exposed), -1), exposed.ends
    end = ends[np.maximum(position, 0)]
    found = (position >= 0) & (end > exposed.starts)
    return np.where(found, by_end[np.maximum(position, 0)], -1), np.minimum(end, exposed.ends)


def _host_waits(exposed: Spans, communications: Communications) -> Waits:
    """Returns the waits for collectives that run on the host: the last interval that is exposed in each of them, if the
    collective ends soon after it. Earlier intervals are the rank's own: it continued while the collective ran."""
    rows = []
    late = np.maximum(RELEASE_NS, ((communications.end - communications.start) * RELEASE_SHARE).astype(np.int64))
    for row in np.argsort(communications.end, kind="stable").tolist():
        interval = int(np.searchsorted(exposed.starts, communications.end[row])) - 1
        if interval < 0:
            continue
        begin, end = int(exposed.starts[interval]), min(int(exposed.ends[interval]), int(communications.end[row]))
        if end > communications.start[row] and communications.end[row] - end <= late[row]:
            rows.append((row, max(begin, int(communications.start[row])), end))
    last = {(begin, end): row for row, begin, end in rows}  # of several that end together, the last
    columns = np.array([(row, begin, end) for (begin, end), row in last.items()], np.int64).reshape(-1, 3).T
    return Waits(*(np.ascontiguousarray(column) for column in columns))


def _is_followed(recording: Recording, times: Ints) -> Bools:
    """Returns True for ends of communications that work was queued behind, or that blocked the host."""
    ops, calls = recording.trace.device_ops, recording.trace.calls
    following = np.searchsorted(ops.start, times - TOLERANCE_NS)
    issued = ops.issued(calls)[np.minimum(following, len(ops) - 1)]
    blocked = calls.of(Role.WAIT)
    waiting = union(blocked.start, blocked.end)
    return ((following < len(ops)) & (issued <= times)) | waiting.contains(times)


def _own(recording: Recording, waits: Spans) -> list[Spans]:
    """Returns the rank's own time by kind, without the waits, since the begin of the window."""
    spans = {own: merge(*map(recording.owned_spans.of, regimes)) for own, regimes in OWN_REGIMES.items()}
    begin = recording.steps.begin
    return [subtract(Spans(spans[own].starts - begin, spans[own].ends - begin), waits) for own in Own]
