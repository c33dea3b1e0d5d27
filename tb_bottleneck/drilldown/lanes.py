"""The rows (lanes) of the timeline: regimes, steps and streams; in a run on the CPU, threads in place of streams.

The events of a lane are sorted by start. They do not overlap, except for rare overlaps of operations on a stream.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_bottleneck.attribution.host_activity import REGIME_OF_ACTIVITY, activity_named
from tb_bottleneck.attribution.owned_spans import OwnedSpans
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.attribution.training_detection import has_training
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.knowledge.catalogue import activity_patterns, first_match
from tb_bottleneck.trace.columns.packed_column import look_up
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.steps import step_marks
from tb_bottleneck.trace.table import Ints, Rows
from tb_bottleneck.trace.trace import Trace

KEYS = (*REGIMES, "op", "mark", "call", "python", "step")
"""Types of events on the timeline. The tab chooses the colour of an event by its key."""

KEY = {word: row for row, word in enumerate(KEYS)}

MAX_HOST_THREADS, MAX_STREAMS = 2, 12
MAX_DEPTH = 3  # number of rows shown per thread
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
    if len(trace.all_device_ops):
        streams = len(np.unique(trace.all_device_ops.queue))
        return Lanes((*rows, *_streams(trace, device_keys)), max(0, streams - MAX_STREAMS))
    threads, keys = _busiest(trace), _host_keys(trace)
    for thread in threads[:MAX_HOST_THREADS]:
        rows += _host(trace, thread, keys)
    return Lanes(tuple(rows), max(0, len(threads) - MAX_HOST_THREADS))


def _account(spans: OwnedSpans) -> Lane:
    regimes = np.array([KEY[regime] for regime in REGIMES])
    unnamed = np.full(len(spans), -1)
    return Lane("account", "", "account", 0, spans.start, spans.end, regimes[spans.regime], unnamed, ())


def _steps(recording: Recording) -> Lane:
    edges = recording.steps.edges
    names = [f"Step {number + 1}" for number in range(len(edges) - 1)]
    same = np.full(len(names), KEY["step"])
    return Lane("steps", "", "steps", 0, edges[:-1], edges[1:], same, np.arange(len(names)), names)


_HOST_KINDS = (Kind.ANNOTATION, Kind.CPU_OP, Kind.CALL)


def _busiest(trace: Trace) -> list[int]:
    """Returns the threads with operators, annotations or calls, in descending order of the total time of these."""
    rows = trace.rows(*_HOST_KINDS)
    time = np.bincount(trace.events.thread[rows], weights=trace.events.duration[rows], minlength=len(trace.threads))
    return [int(thread) for thread in np.argsort(-time, kind="stable") if time[thread] > 0]


def _host(trace: Trace, thread: int, keys: Ints) -> Iterator[Lane]:
    rows = trace.rows(*_HOST_KINDS)
    rows = rows[trace.events.thread[rows] == thread]
    is_mark = np.isin(rows, step_marks(trace))
    depth = np.zeros(len(rows), np.int64)
    depth[is_mark] = _depths(trace, rows[is_mark])
    depth[~is_mark] = _depths(trace, rows[~is_mark]) + int(depth.max(initial=-1) + 1 if is_mark.any() else 0)
    for level in range(min(int(depth.max(initial=-1)) + 1, MAX_DEPTH)):
        yield _events_lane(trace, thread, level, rows[depth == level], keys)


def _events_lane(trace: Trace, thread: int, depth: int, rows: Rows, keys: Ints) -> Lane:
    events, labels = trace.events, trace.threads[thread]
    title = labels.name or f"thread {labels.thread}"
    return Lane(
        "host",
        title,
        f"host {thread}",
        depth,
        events.start[rows],
        events.end[rows],
        keys[rows],
        events.name[rows],
        trace.names,
    )


def _depths(trace: Trace, rows: Rows) -> Ints:
    """Returns for each event in `rows` the number of events in `rows` that enclose it, at most MAX_DEPTH."""
    parent = nest(trace.events.start[rows], trace.events.end[rows]).parent
    depth = np.zeros(len(rows), np.int64)
    inner = np.flatnonzero(parent != np.arange(len(rows)))
    for level in range(1, MAX_DEPTH + 1):
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
