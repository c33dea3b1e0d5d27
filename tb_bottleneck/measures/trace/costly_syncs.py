"""The waits of a window that cost something, each with what it waited for and which operator waited.

A wait is of one kind:
- read: a value comes to the host: .item(), .cpu(), .tolist(), print(tensor);
- upload: a copy to the device is waited for, as .to(device) does without non_blocking=True;
- shape: an operator's result has a size that only the device knows: nonzero, unique, boolean indexing;
- explicit: no operator waits, but the program: torch.cuda.synchronize(), Event.synchronize();
- other: any other operator.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Bools, Ints

READ, UPLOAD, SHAPE, EXPLICIT, OTHER = "read", "upload", "shape", "explicit", "other"

# Operators that read one value of the device.
READS_SCALAR = ("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero", "aten::equal")
# Operators that read sizes from the device (pytorch aten/src/ATen/native/cuda: Nonzero.cu, Unique.cu, Indexing.cu).
READS_SHAPE = (
    "aten::nonzero",
    "aten::masked_select",
    "aten::_unique2",
    "aten::unique_consecutive",
    "aten::unique_dim",
    "aten::repeat_interleave",
    "aten::index",
    "aten::index_put_",
    "aten::_index_put_impl_",
    "aten::bincount",
    "torchvision::nms",
)


# What a wait costs begins here: a call that finds its work done takes as long, however idle the device is.
MIN_COST_NS = 2_000


@dataclass(frozen=True)
class CostlyWait:
    """A wait that left the device idle: in it, or behind it for as long as `gaps` charges it. Times in ns."""

    kind: str
    operator: str  # the innermost around the call, else the call itself; hostile text
    thread: int
    begin: int
    end: int
    cost: int


@memoized
def costly_waits_of(recording: Recording) -> tuple[CostlyWait, ...]:
    """The waits of the window that cost something, in order of time. The calls of one operator are one wait."""
    trace, calls = recording.trace, recording.trace.calls
    waits = np.isin(calls.role, (Role.WAIT, Role.COPY)) & _waiting(recording)
    # Behind the last step the profiler itself waits for the device.
    rows = np.flatnonzero(waits & (calls.end > recording.steps.begin) & (calls.start < recording.steps.host[-1]))
    if not len(rows):
        return ()
    cost = recording.idle.covered(calls.start[rows], calls.end[rows]) + _charged(recording)[rows]
    called, operator = trace.calling_operators
    key = np.where(called[rows], operator[rows], -1 - rows)
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    costs = np.bincount(group, weights=cost).astype(np.int64)
    begin, end = calls.start[rows[first]], np.zeros(len(first), np.int64)
    np.maximum.at(end, group, calls.end[rows])
    reads, uploads = _copies(recording)
    found = []
    for one in np.argsort(begin).tolist():
        row = int(rows[first[one]])
        if costs[one] < MIN_COST_NS:
            continue
        within = bool(called[row])
        name = trace.names[int(trace.events.name[operator[row]] if within else calls.name[row])]
        asked = int(key[first[one]])
        found.append(
            CostlyWait(
                kind=_kind(name, within, asked in reads or bool(trace.reads[row]), asked in uploads),
                operator=name,
                thread=int(calls.thread[row]),
                begin=int(begin[one]),
                end=int(end[one]),
                cost=int(costs[one]),
            )
        )
    return tuple(found)


def _kind(operator: str, within: bool, reads: bool, uploads: bool) -> str:
    if within and operator in READS_SHAPE:
        return SHAPE
    if reads or operator in READS_SCALAR:
        return READ
    if uploads:
        return UPLOAD
    return OTHER if within else EXPLICIT


def _waiting(recording: Recording) -> Bools:
    """Which calls synchronise, read a value, or were seen to wait."""
    calls = recording.trace.calls
    waiting = (calls.role == Role.WAIT) | recording.trace.reads
    waiting[recording.gaps.waits.call] = True
    return np.asarray(waiting, np.bool_)


def _charged(recording: Recording) -> Ints:
    """What each call is charged for the idle time behind it."""
    waits, charged = recording.gaps.waits, np.zeros(len(recording.trace.calls), np.int64)
    inside = recording.in_window(waits.over)
    charged[waits.call[inside]] = waits.charged[inside]
    return charged


def _copies(recording: Recording) -> tuple[set[int], set[int]]:
    """The operators, as rows of the events, that copy to the host, and those that copy to a device."""
    trace = recording.trace
    called, operator = trace.calling_operators
    ops = trace.all_device_ops
    linked = ops.launched & called[ops.call]
    made = [set(operator[ops.call[linked & (ops.work == work)]].tolist()) for work in (Work.DOWNLOAD, Work.UPLOAD)]
    return made[0], made[1]
