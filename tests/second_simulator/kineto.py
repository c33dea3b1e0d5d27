"""Writes a run as the Chrome trace that torch.profiler exports."""

import gzip
import json
from pathlib import Path
from typing import Any

from second_simulator.machine import MAIN, Machine, Row

BASE_NS = 1_419_247_332_000_000  # Times are whole nanoseconds, as Kineto's: microseconds would be rounded twice.
ON_DEVICE = {"kernel", "gpu_memcpy", "gpu_user_annotation"}


def _event(row: Row) -> dict[str, Any]:
    start, end = round(row.start * 1e3), round(row.end * 1e3)
    args, pid = {key: value for key, value in row.args.items() if key != "step"}, MAIN
    if row.category in ON_DEVICE:
        pid, args = 0, args | {"device": 0, "context": 1, "stream": row.tid}
    event = {"ph": "X", "cat": row.category, "name": row.name, "pid": pid, "tid": row.tid, "args": args}
    return event | {"ts": (BASE_NS + start) / 1e3, "dur": (end - start) / 1e3}


def _flow(event: dict[str, Any]) -> dict[str, Any]:
    """Returns the start of the arrow from a call to its kernel, or its end."""
    ends = {"ph": "f", "bp": "e"} if event["pid"] == 0 else {"ph": "s"}
    at = {key: event[key] for key in ("pid", "tid", "ts")}
    return {"id": event["args"]["correlation"], "cat": "ac2g", "name": "ac2g"} | at | ends


def _on_device(rows: list[Row]) -> list[Row]:
    """Returns the range of every step's work on each stream, which Kineto adds as gpu_user_annotation."""
    spans: dict[tuple[int, int], tuple[float, float]] = {}
    for row in (row for row in rows if row.category in ON_DEVICE):
        start, end = spans.get((row.args["step"], row.tid), (row.start, row.end))
        spans[row.args["step"], row.tid] = min(start, row.start), max(end, row.end)
    return [Row("gpu_user_annotation", f"ProfilerStep#{step}", tid, *span) for (step, tid), span in spans.items()]


def write(path: Path, m: Machine, ranks: int = 1) -> None:
    """Writes what a machine recorded as a .json.gz file."""
    marked = any(row.name.startswith("ProfilerStep#") for row in m.rows)
    events = [_event(row) for row in m.rows + (_on_device(m.rows) if marked else [])]
    events += [_flow(event) for event in events if "correlation" in event["args"]]
    for pid, label in ((MAIN, "CPU"), (0, "GPU 0")):
        for name, value in (("process_name", {"name": "python3"}), ("process_labels", {"labels": label})):
            events.append({"ph": "M", "name": name, "ts": BASE_NS / 1e3, "pid": pid, "tid": 0, "args": value})
    for pid, tid in sorted({(event["pid"], event["tid"]) for event in events}):
        name = {"name": f"thread {tid} (python3)" if pid else f"stream {tid} "}
        events.append({"ph": "M", "name": "thread_name", "ts": BASE_NS / 1e3, "pid": pid, "tid": tid, "args": name})
    start, end = min(row.start for row in m.rows), max(row.end for row in m.rows)
    span = {"cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler"}
    events.append({"ph": "X", **span, "ts": BASE_NS / 1e3 + start, "dur": end - start, "args": {"Op count": 0}})
    device = {"id": 0, "name": m.device.name, "computeMajor": m.device.capability[0], "numSms": m.device.sms,
              "computeMinor": 0, "maxThreadsPerMultiprocessor": 2048, "totalGlobalMem": 40 << 30}  # fmt: skip
    trace: dict[str, Any] = {"schemaVersion": 1, "deviceProperties": [device], "with_stack": int(m.stack)}
    if ranks > 1:
        trace["distributedInfo"] = {"backend": "nccl", "rank": 0, "world_size": ranks}
    with gzip.open(path, "wt", compresslevel=1) as file:
        json.dump(trace | {"displayTimeUnit": "ms", "traceName": path.name, "traceEvents": events}, file)
