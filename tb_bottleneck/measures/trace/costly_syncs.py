"""The synchronisations of a window that cost time, each with its kind and the operator that waited.

A synchronisation has one kind:
- read: a value is copied to the host: .item(), .cpu(), .tolist(), print(tensor);
- upload: the host waits for a copy to the device, as .to(device) does without non_blocking=True;
- shape: an operator's result has a size that only the device knows: nonzero, unique, boolean indexing;
- explicit: the program waits outside any operator: torch.cuda.synchronize(), Event.synchronize();
- other: any other operator.
"""

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.record import Record
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Bools, Ints

READ, UPLOAD, SHAPE, EXPLICIT, OTHER = "read", "upload", "shape", "explicit", "other"

# Operators that read one value from the device.
READS_SCALAR = ("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero", "aten::equal")
# Operators that read sizes from the device (pytorch aten/src/ATen/native/cuda: Nonzero.cu, Unique.cu, Indexing.cu;
# sparse/cuda/SparseCUDATensor.cu).
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
    "aten::_coalesce",
    "torchvision::nms",
)
# A wait costs time from here on: a call that does not wait takes this long, even if the device is idle.
MIN_COST_NS = 2_000


class CostlyWait(Record, frozen=True):
    """A wait that left the device idle, during the wait or after it for the time that sync_cost charges to it.

    Times are in ns.
    """

    kind: str
    operator: str  # the innermost operator around the call, or else the call itself; untrusted text
    thread: int
    begin: int
    end: int
    cost: int


@memoized
def costly_waits_of(recording: Recording) -> tuple[CostlyWait, ...]:
    """Returns the waits of the window that cost time, in order of time. The calls of one operator are one wait."""
    trace, calls = recording.trace, recording.trace.calls
    waits = np.isin(calls.role, (Role.WAIT, Role.COPY)) & _waiting(recording)
    # After the last step the profiler itself waits for the device.
    rows = np.flatnonzero(waits & (calls.end > recording.steps.begin) & (calls.start < recording.steps.host[-1]))
    if not len(rows):
        return ()
    cost = _costs(recording, rows)
    called, operator = trace.calling_operators
    key = np.where(called[rows], operator[rows], -1 - rows)
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    costs = np.bincount(group, weights=cost).astype(np.int64)
    begin, end = calls.start[rows[first]], np.zeros(len(first), np.int64)
    np.maximum.at(end, group, calls.end[rows])
    reads, uploads = _copies(recording)
    costly = []
    for wait in np.argsort(begin).tolist():
        row = int(rows[first[wait]])
        if costs[wait] < MIN_COST_NS:
            continue
        in_operator = bool(called[row])
        name = trace.names[int(trace.events.name[operator[row]] if in_operator else calls.name[row])]
        caller = int(key[first[wait]])
        costly.append(
            CostlyWait(
                kind=_kind(name, in_operator, caller in reads or bool(trace.reads[row]), caller in uploads),
                operator=name,
                thread=int(calls.thread[row]),
                begin=int(begin[wait]),
                end=int(end[wait]),
                cost=int(costs[wait]),
            )
        )
    return tuple(costly)


def _costs(recording: Recording, rows: Ints) -> Ints:
    """Returns the idle time during and after each of these calls, in ns. Together, they are at most the idle time.

    Threads may wait at the same time: the idle time then counts for the wait that began first.
    """
    calls, idle = recording.trace.calls, recording.idle
    begin, end = calls.start[rows], calls.end[rows]
    earlier = np.maximum.accumulate(np.append(np.int64(-(2**62)), end))[:-1]
    during = idle.covered(np.clip(begin, earlier, end), end)
    after = np.minimum(np.cumsum(_charged(recording)[rows]), idle.total() - int(during.sum()))
    return np.asarray(during + np.diff(after, prepend=0), np.int64)


def _kind(operator: str, in_operator: bool, reads: bool, uploads: bool) -> str:
    if in_operator and operator in READS_SHAPE:
        return SHAPE
    if reads or operator in READS_SCALAR:
        return READ
    if uploads:
        return UPLOAD
    return OTHER if in_operator else EXPLICIT


def _waiting(recording: Recording) -> Bools:
    """Returns a mask of the calls that synchronise, read a value, or were observed to wait."""
    calls = recording.trace.calls
    waiting = (calls.role == Role.WAIT) | recording.trace.reads
    waiting[recording.gaps.waits.call] = True
    return np.asarray(waiting, np.bool_)


def _charged(recording: Recording) -> Ints:
    """Returns the idle time (ns) after each call that is charged to it."""
    waits, charged = recording.gaps.waits, np.zeros(len(recording.trace.calls), np.int64)
    inside = recording.in_window(waits.over)
    charged[waits.call[inside]] = waits.charged[inside]
    return charged


def _copies(recording: Recording) -> tuple[set[int], set[int]]:
    """Returns the operators (rows of the events) that copy to the host, and those that copy to a device."""
    trace = recording.trace
    called, operator = trace.calling_operators
    ops = trace.all_device_ops
    linked = ops.launched & called[ops.call]
    downloads, uploads = (
        set(operator[ops.call[linked & (ops.work == work)]].tolist()) for work in (Work.DOWNLOAD, Work.UPLOAD)
    )
    return downloads, uploads
