"""Makes an allocator snapshot from the memory events of a trace: what a device's allocator would have recorded."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from helpers.snapshots import BASE, block, frame, segment

from tb_bottleneck.trace.frames import frame_parts
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import innermost, nest
from tb_bottleneck.trace.table import by_thread
from tb_bottleneck.trace.trace import Trace

ENGINE = "autograd::engine::evaluate_function"


def snapshot_of_trace(trace: Trace, earlier: Iterable[int]) -> dict[str, Any]:
    """Returns the raw snapshot. `earlier` has sizes of blocks that exist all the time, in bytes: traces of the host
    leave them out."""
    memory = trace.memory
    stacks = stacks_of(trace, memory.thread, memory.time)
    entries, live = [], {}
    for time, address, size, stack in zip(
        memory.time.tolist(), memory.address.tolist(), memory.size.tolist(), stacks, strict=True
    ):
        entry = {"addr": address, "size": abs(size), "stream": 0, "time_us": time // 1000, "frames": stack}
        if size > 0:
            live[address] = block(-(-size // 512) * 512, stack)
            entries.append({"action": "alloc", **entry})
        else:
            live.pop(address, None)
            entries += [{"action": action, **entry} for action in ("free_requested", "free_completed")]
    segments = [segment(address, [made]) for address, made in live.items()]
    segments += [segment(BASE + (number << 32), [block(-(-size // 512) * 512)]) for number, size in enumerate(earlier)]
    return {"segments": segments, "device_traces": [entries], "external_annotations": list(_updates(trace))}


def stacks_of(trace: Trace, thread: Any, time: Any) -> list[list[dict[str, Any]]]:
    """Returns the frames around each time, innermost first."""
    events = trace.events
    rows = np.flatnonzero(np.isin(events.kind, [Kind.PYTHON, Kind.CPU_OP]))
    found: list[list[dict[str, Any]]] = [[] for _ in range(len(time))]
    own = by_thread(np.arange(len(time)), thread)
    for each, around in by_thread(rows, events.thread).items():
        mine = own.get(each, np.empty(0, np.intp))
        parent = nest(events.start[around], events.end[around]).parent
        inside, row = innermost(events.start[around], events.end[around], time[mine])
        for number, at in zip(mine[inside].tolist(), row[inside].tolist(), strict=True):
            names = []
            while at >= 0:
                names.append(trace.names[events.name[around[at]]])
                at = int(parent[at]) if parent[at] != at else -1
            found[number] = [made for name in names if (made := _frame(name)) is not None]
    return found


def _frame(name: str) -> dict[str, Any] | None:
    if name.startswith(ENGINE):
        return frame("", 0, "torch::autograd::Engine::evaluate_function(std::shared_ptr<>)")
    if name.startswith("aten::"):
        return frame("", 0, f"at::_ops::{name.removeprefix('aten::')}::call(at::Tensor const&)")
    file, line, function = frame_parts(name)
    return frame(file, line, function) if file.endswith(".py") else None


def _updates(trace: Trace) -> Iterator[dict[str, Any]]:
    for row in trace.rows(Kind.ANNOTATION).tolist():
        name = trace.names[trace.events.name[row]]
        if name.startswith("Optimizer.step#"):
            times = (("START", trace.events.start[row]), ("END", trace.events.end[row]))
            yield from ({"name": name, "stage": stage, "device": 0, "time_us": int(at) // 1000} for stage, at in times)
