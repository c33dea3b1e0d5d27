"""The waits of the host for the device that leave the device idle: their number, their kinds, and the operators that
wait."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Measure, Missing, Record, text_measure
from tb_bottleneck.base.units import share_text
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.kernel_names import cut
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
# A wait counts only from this cost on: a call that does not wait takes this long too, even if the device is idle.
MIN_COST_NS = 2_000


class CostlyWait(Record, frozen=True):
    """A wait of the host for the device that leaves the device idle. The wait lasts from `begin` to `end`. `cost` is
    the device's idle time during the wait, plus the idle time after the wait that the attribution charges to the wait.
    All times are in ns. `thread` is an index of the trace's threads.

    `kind` is one of:
    - read: a value is copied to the host: .item(), .cpu(), .tolist(), print(tensor);
    - upload: the host waits for a copy to the device, as .to(device) does without non_blocking=True;
    - shape: an operator's result has a size that only the device knows: nonzero, unique, boolean indexing;
    - explicit: the program waits outside any operator: torch.cuda.synchronize(), Event.synchronize();
    - other: any other operator.
    """

    kind: str
    operator: str  # the innermost operator around the call, or else the call itself; untrusted text
    thread: int
    begin: int
    end: int
    cost: int


@memoized
def costly_waits_of(recording: Recording) -> tuple[CostlyWait, ...]:
    """Returns the waits of the window whose cost is at least MIN_COST_NS, in order of time. All calls of one operator
    together are one wait."""
    trace, calls = recording.trace, recording.trace.calls
    waits = np.isin(calls.role, (Role.WAIT, Role.COPY)) & _waiting(recording)
    # After the last step of the host, the profiler itself waits for the device.
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
    """Returns the device's idle time (ns) due to each of the calls `rows`. The sum is at most the total idle time.

    If several threads wait at the same time, the idle time counts for the wait that begins first.
    """
    calls, idle = recording.trace.calls, recording.idle
    begin, end = calls.start[rows], calls.end[rows]
    earlier = np.maximum.accumulate(np.append(np.int64(-(2**62)), end))[:-1]
    during = idle.covered(np.clip(begin, earlier, end), end)
    after = np.minimum(np.cumsum(_charged(recording)[rows]), idle.total() - int(during.sum()))
    return np.asarray(during + np.diff(after, prepend=0), np.int64)


def _kind(operator: str, in_operator: bool, reads: bool, uploads: bool) -> str:
    """Returns the kind of a wait (see CostlyWait). `operator` is the name of the operator or call that waits.
    `in_operator` is True for an operator. `reads` is True if the operator or call copies a value to the host, `uploads`
    if the operator copies to a device."""
    if in_operator and operator in READS_SHAPE:
        return SHAPE
    if reads or operator in READS_SCALAR:
        return READ
    if uploads:
        return UPLOAD
    return OTHER if in_operator else EXPLICIT


def _waiting(recording: Recording) -> Bools:
    """Returns a mask of the calls that synchronise with the device, read a value, or were observed to wait."""
    calls = recording.trace.calls
    waiting = (calls.role == Role.WAIT) | recording.trace.reads
    waiting[recording.gaps.waits.call] = True
    return np.asarray(waiting, np.bool_)


def _charged(recording: Recording) -> Ints:
    """Returns for each call the device's idle time (ns) after the call that the attribution charges to the call."""
    waits, charged = recording.gaps.waits, np.zeros(len(recording.trace.calls), np.int64)
    inside = recording.in_window(waits.over)
    charged[waits.call[inside]] = waits.charged[inside]
    return charged


def _copies(recording: Recording) -> tuple[set[int], set[int]]:
    """Returns two sets of event rows: the operators that copy to the host, and the operators that copy to a device."""
    trace = recording.trace
    called, operator = trace.calling_operators
    ops = trace.all_device_ops
    linked = ops.launched & called[ops.call]
    downloads, uploads = (
        set(operator[ops.call[linked & (ops.work == work)]].tolist()) for work in (Work.DOWNLOAD, Work.UPLOAD)
    )
    return downloads, uploads


_CPU_RUN = Missing("the work ran on the CPU: there are no runtime calls")
_NO_WAIT = Missing("no wait left the device idle")
MAX_NAMES_LISTED = 3
# A kind of wait is worth its own finding from this share of the costs of all waits on.
MIN_WAIT_KIND_SHARE = 0.25


def costly_waits(recording: Recording) -> Measure | Missing:
    """Waits of the host per step that leave the device idle (count)."""
    return _count(recording, None)


def costly_reads(recording: Recording) -> Measure | Missing:
    """Reads of device values per step that leave the device idle (count)."""
    return _count(recording, READ)


def read_waits(recording: Recording) -> Measure | Missing:
    """Share of the costs of all waits (see `CostlyWait`) that is due to reads of device values."""
    return _share(recording, READ)


def upload_waits(recording: Recording) -> Measure | Missing:
    """Share of the costs of all waits that is due to waits for copies to the device."""
    return _share(recording, UPLOAD)


def shape_waits(recording: Recording) -> Measure | Missing:
    """Share of the costs of all waits that is due to operators with results of a size that only the device knows."""
    return _share(recording, SHAPE)


def explicit_waits(recording: Recording) -> Measure | Missing:
    """Share of the costs of all waits that is due to synchronisations outside any operator."""
    return _share(recording, EXPLICIT)


def minor_kind_waits(recording: Recording) -> Measure | Missing:
    """Share of the waits, by number, whose kind has less than MIN_WAIT_KIND_SHARE of the costs of all waits."""
    if not recording.on_device:
        return _CPU_RUN
    waits = costly_waits_of(recording)
    if not waits:
        return _NO_WAIT
    costs: Counter[str] = Counter()
    for wait in waits:
        costs[wait.kind] += wait.cost
    minor = sum(costs[wait.kind] < MIN_WAIT_KIND_SHARE * costs.total() for wait in waits)
    return Measure(minor / len(waits), "share", "waits", minor)


def kinds_of_waits(recording: Recording) -> Measure | Missing:
    """The kinds of the costly waits, costliest first, each with the number of its waits and its share of the costs of
    all waits, as text."""
    if not recording.on_device:
        return _CPU_RUN
    waits = costly_waits_of(recording)
    return _costliest_names((wait.kind, wait.cost) for wait in waits) if waits else _NO_WAIT


def idle_in_waits(recording: Recording) -> Measure | Missing:
    """Time per step (ns) in which the device is idle while the host waits for it."""
    if not recording.on_device:
        return _CPU_RUN
    return Measure(
        float(recording.gaps.by_activity.of(Activity.SYNCHRONIZE).sum()) / len(recording.steps), "ns", "step"
    )


def waiting_operators(recording: Recording) -> Measure | Missing:
    """The operators that contain the costly waits, costliest first, each with the number of its waits and its share of
    the costs of all waits, as text."""
    if not recording.on_device:
        return _CPU_RUN
    waits = costly_waits_of(recording)
    if not waits:
        return _NO_WAIT
    costliest = max(waits, key=lambda wait: wait.cost)
    listed = _costliest_names((wait.operator, wait.cost) for wait in waits)
    return replace(listed, begin=costliest.begin, end=costliest.end)


def _count(recording: Recording, kind: str | None) -> Measure | Missing:
    """Returns the number per step of costly waits of `kind`; None stands for all kinds."""
    if not recording.on_device:
        return _CPU_RUN
    waits = [wait for wait in costly_waits_of(recording) if kind in (None, wait.kind)]
    if not waits:
        return Measure(0.0, "count", "step", 0)
    costliest = max(waits, key=lambda wait: wait.cost)
    rate = len(waits) / len(recording.steps)
    return Measure(rate, "count", "step", len(waits), begin=costliest.begin, end=costliest.end)


def _share(recording: Recording, kind: str) -> Measure | Missing:
    """Returns the share of the costs of all waits that waits of `kind` have."""
    if not recording.on_device:
        return _CPU_RUN
    waits = costly_waits_of(recording)
    if not waits:
        return _NO_WAIT
    of_kind: list[CostlyWait] = [wait for wait in waits if wait.kind == kind]
    part = sum(wait.cost for wait in of_kind) / sum(wait.cost for wait in waits)
    if not of_kind:
        return Measure(part, "share", "waits", 0)
    costliest = max(of_kind, key=lambda wait: wait.cost)
    return Measure(part, "share", "waits", len(of_kind), begin=costliest.begin, end=costliest.end)


def _costliest_names(costs: Iterable[tuple[str, int]]) -> Measure:
    """Returns the MAX_NAMES_LISTED names with the highest total cost as text, each with the number of its pairs and its
    share of all costs. `costs` has pairs (name, cost)."""
    total: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for name, cost in costs:
        total[name] += cost
        times[name] += 1
    whole = sum(total.values())
    costliest = total.most_common(MAX_NAMES_LISTED)
    listed = [f"{cut(name)} ({times[name]}x, {share_text(cost / whole)})" for name, cost in costliest]
    return text_measure(", ".join(listed), sum(times.values()))
