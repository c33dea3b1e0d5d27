"""The rows (lanes) of the timeline: regimes, steps, critical path, host threads, streams and counters.

The events of a lane are sorted by start. They do not overlap, except for rare overlaps of operations on a stream.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tb_bottleneck.attribution.host_activity import REGIME_OF_ACTIVITY, activity_named
from tb_bottleneck.attribution.owned_spans import OwnedSpans
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.attribution.training_detection import has_training
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.drilldown.operations.critical_path import critical_path
from tb_bottleneck.knowledge.catalogue import activity_patterns, first_match
from tb_bottleneck.trace.columns.packed_column import look_up
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.steps import step_marks
from tb_bottleneck.trace.table import Ints, Rows
from tb_bottleneck.trace.trace import Trace

LEVELS = tuple(f"counter{level}" for level in range(10))
"""Keys of counter values, one per tenth of the range of a counter. The tab draws them as bars."""

KEYS = (*REGIMES, "op", "mark", "call", "python", "step", *LEVELS)
"""Types of events on the timeline. The tab chooses the colour of an event by its key."""

KEY = {word: row for row, word in enumerate(KEYS)}

MAX_HOST_THREADS, MAX_PYTHON_THREADS, MAX_STREAMS, MAX_COUNTERS = 6, 2, 12, 8
MAX_DEPTH, MAX_PYTHON_DEPTH = 8, 10  # number of rows shown per thread
MAX_NESTING = 72  # frames nest deeper than operators; events at a larger depth are not shown
# A depth with fewer frames gets no row, because frames that rarely change, such as main(), give no information.
MIN_FRAMES = 4
_MONITOR_FRAME = "tb_bottleneck/monitor/"
_ROLE_KEY = {Role.WAIT: Regime.SYNC, Role.COPY: Regime.TRANSFER, Role.ALLOCATE: Regime.ALLOCATOR}


@dataclass(frozen=True, eq=False)
class Lane:
    """One row of the timeline. `start`, `end` (ns), `key` and `name` have one element per event.

    `key` is an index into KEYS and decides the colour. `name` is an index into `names`, or -1 if an event has no name
    of its own. `track` is the id of the thread or stream, and `depth` the nesting depth of the row in this track."""

    group: str
    title: str
    track: str
    depth: int
    start: Ints
    end: Ints
    key: Ints
    name: Ints
    names: Sequence[str]

    @cached_property
    def reach(self) -> Ints:
        """For each event the latest end, in ns, of this event and all earlier events."""
        return np.asarray(np.maximum.accumulate(self.end), np.int64)


@dataclass(frozen=True, eq=False)
class Lanes:
    """All rows of the timeline, and the number of threads and streams that were left out."""

    rows: tuple[Lane, ...]
    left_out: int


def lanes_of(trace: Trace, recording: Recording | None, device_keys: Ints) -> Lanes:
    """Returns the rows of the timeline.

    `device_keys` has for each operation in `trace.all_device_ops` an index into KEYS, which decides the colour.
    """
    rows: list[Lane] = []
    if recording is not None:
        rows += [_account(recording.owned_spans), _steps(recording)]
        rows += [_critical(recording, device_keys)] if recording.on_device else []
    threads = _busiest(trace, (Kind.ANNOTATION, Kind.CPU_OP, Kind.CALL))
    keys = _host_keys(trace)
    for thread in threads[:MAX_HOST_THREADS]:
        rows += _host(trace, thread, keys)
    pythons = [thread for thread in _busiest(trace, (Kind.PYTHON,)) if not _is_monitor(trace, thread, threads)]
    for thread in pythons[:MAX_PYTHON_THREADS]:
        rows += _python(trace, thread, keys)
    streams = len(np.unique(trace.all_device_ops.queue))
    left_out = max(0, len(threads) - MAX_HOST_THREADS) + max(0, streams - MAX_STREAMS)
    return Lanes((*rows, *_streams(trace, device_keys), *_counters(trace)), left_out)


def _account(spans: OwnedSpans) -> Lane:
    regimes = np.array([KEY[regime] for regime in REGIMES])
    unnamed = np.full(len(spans), -1)
    return Lane("account", "", "account", 0, spans.start, spans.end, regimes[spans.regime], unnamed, ())


def _critical(recording: Recording, device_keys: Ints) -> Lane:
    path, trace = critical_path(recording), recording.trace
    on_device = path.op >= 0
    keys = np.where(on_device, device_keys[path.op], KEY["op"])
    names = np.where(on_device, trace.all_device_ops.name[path.op], len(trace.names))
    return Lane("critical", "", "critical", 0, path.begin, path.end, keys, names, (*trace.names, "Host"))


def _steps(recording: Recording) -> Lane:
    edges = recording.steps.edges
    names = [f"Step {number + 1}" for number in range(len(edges) - 1)]
    same = np.full(len(names), KEY["step"])
    return Lane("steps", "", "steps", 0, edges[:-1], edges[1:], same, np.arange(len(names)), names)


def _busiest(trace: Trace, kinds: tuple[Kind, ...]) -> list[int]:
    """Returns the threads with events of `kinds`, in descending order of the total time of these events."""
    rows = trace.rows(*kinds)
    time = np.bincount(trace.events.thread[rows], weights=trace.events.duration[rows], minlength=len(trace.threads))
    return [int(thread) for thread in np.argsort(-time, kind="stable") if time[thread] > 0]


def _is_monitor(trace: Trace, thread: int, working: list[int]) -> bool:
    """Returns True if `thread` is a thread of our monitor: it runs Python functions of the monitor, and is not in
    `working`, the threads with operators, annotations or calls."""
    if thread in working:
        return False
    rows = trace.rows(Kind.PYTHON)
    names = np.unique(trace.events.name[rows[trace.events.thread[rows] == thread]])
    return any(_MONITOR_FRAME in trace.names[name] for name in names.tolist())


def _host(trace: Trace, thread: int, keys: Ints) -> Iterator[Lane]:
    rows = trace.rows(Kind.ANNOTATION, Kind.CPU_OP, Kind.CALL)
    rows = rows[trace.events.thread[rows] == thread]
    is_mark = np.isin(rows, step_marks(trace))
    depth = np.zeros(len(rows), np.int64)
    depth[is_mark] = _depths(trace, rows[is_mark])
    depth[~is_mark] = _depths(trace, rows[~is_mark]) + int(depth.max(initial=-1) + 1 if is_mark.any() else 0)
    for level in range(min(int(depth.max(initial=-1)) + 1, MAX_DEPTH)):
        yield _events_lane(trace, "host", thread, level, rows[depth == level], keys)


def _python(trace: Trace, thread: int, keys: Ints) -> Iterator[Lane]:
    rows = trace.rows(Kind.PYTHON)
    rows = rows[trace.events.thread[rows] == thread]
    depth = _depths(trace, rows)
    levels = min(int(depth.max(initial=-1)) + 1, MAX_NESTING)
    shown_levels = [level for level in range(levels) if (depth == level).sum() >= MIN_FRAMES]
    for shown, level in enumerate(shown_levels[:MAX_PYTHON_DEPTH]):
        lane = _events_lane(trace, "python", thread, shown, rows[depth == level], keys)
        yield _with_call_lines(trace, lane, rows[depth == level])


def _with_call_lines(trace: Trace, lane: Lane, rows: Rows) -> Lane:
    """Returns `lane` with the calling line appended to the names of the functions, where this line is known.

    The calling line is the line of the user's program that calls the function. `rows` has the event row of each element
    of the lane.
    """
    line = trace.call_lines.of(rows)
    known = np.flatnonzero(line > 0)
    if not len(known):
        return lane
    pairs, which = np.unique(np.stack((lane.name[known], line[known])), axis=1, return_inverse=True)
    names = [f"{trace.names[name]}, called in line {number}" for name, number in pairs.T.tolist()]
    name = np.array(lane.name, np.int64)
    name[known] = len(trace.names) + which.reshape(-1)
    return replace(lane, name=name, names=(*trace.names, *names))


def _events_lane(trace: Trace, group: str, thread: int, depth: int, rows: Rows, keys: Ints) -> Lane:
    events, labels = trace.events, trace.threads[thread]
    title = labels.name or f"thread {labels.thread}"
    return Lane(
        group,
        title,
        f"{group} {thread}",
        depth,
        events.start[rows],
        events.end[rows],
        keys[rows],
        events.name[rows],
        trace.names,
    )


def _depths(trace: Trace, rows: Rows) -> Ints:
    """Returns for each event in `rows` the number of events in `rows` that enclose it, at most MAX_NESTING."""
    parent = nest(trace.events.start[rows], trace.events.end[rows]).parent
    depth = np.zeros(len(rows), np.int64)
    inner = np.flatnonzero(parent != np.arange(len(rows)))
    for level in range(1, MAX_NESTING + 1):
        if not len(inner):
            break
        depth[inner] = level
        inner = inner[np.isin(parent[inner], inner)]
    return depth


def _host_keys(trace: Trace) -> Ints:
    """Returns an index into KEYS for each event of the trace. The keys of device work have no meaning."""
    events, training = trace.events, has_training(trace)
    base = {Kind.CPU_OP: "op", Kind.ANNOTATION: "mark", Kind.PYTHON: "python", Kind.CALL: "call"}
    by_kind = np.full(max(Kind) + 1, KEY["op"])
    for kind, word in base.items():
        by_kind[kind] = KEY[word]
    keys = np.asarray(look_up(by_kind, events.kind), np.int64)
    for kind, on in ((Kind.ANNOTATION, "annotation"), (Kind.CPU_OP, "annotation"), (Kind.PYTHON, "python")):
        rows, patterns = trace.rows(kind), activity_patterns(on, training)
        key_of_name = np.full(len(trace.names), -1, np.int64)
        for name in np.unique(events.name[rows]).tolist():
            activity = first_match(patterns, trace.names[name])
            if activity is not None:
                key_of_name[name] = KEY[REGIME_OF_ACTIVITY[activity_named(activity)]]
        key = key_of_name[events.name[rows]]
        keys[rows[key >= 0]] = key[key >= 0]
    calls = trace.rows(Kind.CALL)
    for role, word in _ROLE_KEY.items():
        keys[calls[trace.calls.role == role]] = KEY[word]
    keys[calls[trace.reads & (trace.calls.role == Role.COPY)]] = KEY[Regime.SYNC]
    return keys


def _counters(trace: Trace) -> Iterator[Lane]:
    """Yields one row of the timeline per hardware counter of the trace's device.

    Values in percent are shown relative to 100 %, all others relative to the largest value of the counter.
    """
    counters = trace.counters.take(trace.counters.device == trace.device_index)
    for name in np.unique(counters.name)[:MAX_COUNTERS].tolist():
        samples = counters.take(counters.name == name)
        title, values = trace.counter_names[name], samples.value
        if len(samples) < 2:
            continue
        begins = np.concatenate(([2 * samples.time[0] - samples.time[1]], samples.time[:-1]))
        largest = 100.0 if "%" in title else max(float(values.max()), 1e-9)
        level = np.clip(len(LEVELS) * values / largest, 0, len(LEVELS) - 1).astype(np.int64)
        texts, which = np.unique(np.round(values), return_inverse=True)
        names = [f"{value:,.0f}" for value in texts.tolist()]
        yield Lane("counter", title, f"counter {name}", 0, begins, samples.time, level + KEY[LEVELS[0]], which, names)


def _streams(trace: Trace, keys: Ints) -> Iterator[Lane]:
    """Yields one row of the timeline for each of the MAX_STREAMS busiest streams. `keys` has an index into KEYS per
    operation."""
    ops = trace.all_device_ops
    busy = np.bincount(ops.queue, weights=ops.end - ops.start, minlength=len(trace.threads))
    several = len(np.unique(ops.device)) > 1
    for queue in np.argsort(-busy, kind="stable")[:MAX_STREAMS].tolist():
        rows = np.flatnonzero(ops.queue == queue)
        if not len(rows):
            return
        device = f"device {int(ops.device[rows[0]])}, " if several else ""
        copies = np.isin(ops.work[rows], (Work.UPLOAD, Work.DOWNLOAD, Work.PEER_COPY)).all()
        content = "copies" if copies else "stream"
        title = f"{device}{content} {trace.threads[queue].thread}"
        yield Lane(
            "device",
            title,
            f"device {queue}",
            0,
            ops.start[rows],
            ops.end[rows],
            keys[rows],
            ops.name[rows],
            trace.names,
        )
