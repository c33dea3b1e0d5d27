"""Exports a time range of a recording as a small trace for other viewers: Chrome's trace JSON, gzipped.

The slice is written from the tables, so it contains no metadata of the file (hosts, users, environment).
"""

import gzip
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from tb_bottleneck.base.units import NS_PER_US
from tb_bottleneck.trace.kinds import DEVICE_KINDS, Kind
from tb_bottleneck.trace.table import Rows
from tb_bottleneck.trace.trace import Trace

MAX_SLICE_EVENTS = 200_000  # about 40 MB of JSON, 4 MB gzipped
_CATEGORY = {
    Kind.CPU_OP: "cpu_op",
    Kind.ANNOTATION: "user_annotation",
    Kind.PYTHON: "python_function",
    Kind.CALL: "cuda_runtime",
    Kind.KERNEL: "kernel",
    Kind.MEMCPY: "gpu_memcpy",
    Kind.MEMSET: "gpu_memset",
    Kind.OVERHEAD: "overhead",
}


def slice_of(trace: Trace, begin: int, end: int) -> bytes:
    """Returns the events that overlap [begin, end) (ns), as a gzipped trace with at most MAX_SLICE_EVENTS events.

    If there are more events, the shortest ones are left out, and the key "events_left_out" has their number.
    """
    events = trace.events
    rows = np.flatnonzero((events.start < end) & (events.end > begin) & np.isin(events.kind, tuple(_CATEGORY)))
    left_out = max(0, len(rows) - MAX_SLICE_EVENTS)
    if left_out:
        rows = np.sort(rows[np.argsort(-events.duration[rows], kind="stable")[:MAX_SLICE_EVENTS]])
    metadata = {"displayTimeUnit": "ns", "cut_by": "tb_bottleneck", "events_left_out": left_out}
    content = {**metadata, "traceEvents": [*_names(trace, rows), *_complete_events(trace, rows), *_flows(trace, rows)]}
    return gzip.compress(json.dumps(content, separators=(",", ":")).encode(), compresslevel=3, mtime=0)


def _names(trace: Trace, rows: Rows) -> Iterator[dict[str, Any]]:
    """Yields the metadata events that name the threads of the events `rows`."""
    for row in np.unique(trace.events.thread[rows]).tolist():
        thread = trace.threads[row]
        pid, tid = _number(thread.process), _number(thread.thread)
        if thread.name:
            yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": thread.name}}


def _complete_events(trace: Trace, rows: Rows) -> Iterator[dict[str, Any]]:
    """Yields the events with start and duration."""
    events = trace.events.take(rows)
    on_device = np.isin(events.kind, DEVICE_KINDS)
    for row in range(len(rows)):
        thread = trace.threads[int(events.thread[row])]
        args: dict[str, Any] = {}
        if events.correlation[row]:
            args["correlation"] = int(events.correlation[row])
        if on_device[row]:
            args |= {"device": int(events.device[row]), "stream": int(events.stream[row])}
        if events.bytes[row]:
            args["bytes"] = int(events.bytes[row])
        yield {
            "ph": "X",
            "cat": _CATEGORY[Kind(int(events.kind[row]))],
            "name": trace.names[int(events.name[row])],
            "pid": _number(thread.process),
            "tid": _number(thread.thread),
            "ts": int(events.start[row]) / NS_PER_US,
            "dur": int(events.duration[row]) / NS_PER_US,
            "args": args,
        }


def _flows(trace: Trace, rows: Rows) -> Iterator[dict[str, Any]]:
    """Yields the flow events that connect launching calls with their work on the device."""
    events = trace.events.take(rows)
    calls = {
        int(events.correlation[row]): row
        for row in np.flatnonzero((events.kind == Kind.CALL) & (events.correlation != 0)).tolist()
    }
    for row in np.flatnonzero(np.isin(events.kind, DEVICE_KINDS)).tolist():
        call = calls.get(int(events.correlation[row]))
        if call is not None:
            for phase, at in (("s", call), ("f", row)):
                thread = trace.threads[int(events.thread[at])]
                yield {
                    "ph": phase,
                    "id": int(events.correlation[row]),
                    "cat": "ac2g",
                    "name": "ac2g",
                    "pid": _number(thread.process),
                    "tid": _number(thread.thread),
                    "ts": int(events.start[at]) / NS_PER_US,
                    **({"bp": "e"} if phase == "f" else {}),
                }


def _number(name: str) -> int | str:
    return int(name) if name.isdigit() and len(name) < 16 else name
