"""The table of device operations: kernels, copies and fills, each with its kind of work and the call that launched it.

An operation is linked to the launching call by the argument `correlation`, never by gpu_user_annotation. A
gpu_user_annotation covers only operations launched by the thread of the annotation, but another thread launches the
backward pass.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from tb_bottleneck.base.arrays import distinct_rows, distinct_values
from tb_bottleneck.knowledge.catalogue import first_match, kernel_patterns, operator_patterns
from tb_bottleneck.trace.columns.packed_column import look_up, packed
from tb_bottleneck.trace.events import Events
from tb_bottleneck.trace.kinds import DEVICE_KINDS, Kind
from tb_bottleneck.trace.runtime_calls import Calls
from tb_bottleneck.trace.table import Bools, Ints, Table, column


class Work(IntEnum):
    """The kind of work of a device operation. knowledge/kernels.toml uses the first four names, in lower case."""

    UNKNOWN = 0
    CONTRACTION = 1
    STREAMING = 2
    COLLECTIVE = 3
    UPLOAD = 4  # host to device
    DOWNLOAD = 5  # device to host
    DEVICE_COPY = 6  # inside a device, or a fill
    PEER_COPY = 7  # between devices


COMPUTE_KERNELS = (Work.CONTRACTION, Work.STREAMING, Work.UNKNOWN)
"""The kinds of work of kernels that compute: all kernels except collectives."""
SHORTEST_KERNEL_NS = 2_000.0
"""The minimum time to start and end a kernel: the shortest ones of 20 public recordings, V100 to H100 and MI300X, take
1 to 5 us."""
MIN_LINK_BOUND_BYTES = 1 << 20
"""Smaller copies are limited by their start-up, not by the link."""


@dataclass(frozen=True, eq=False)
class DeviceOps(Table):
    """The operations of devices. There is one row per kernel, copy or fill, sorted by start."""

    start: Ints = column("ns", "start on the device")
    end: Ints = column("ns", "end on the device")
    work: Ints = column("Work", "kind of work")
    name: Ints = column("row of names", "kernel or copy name")
    device: Ints = column("id", "device index")
    queue: Ints = column("row of threads", "the stream, as an interned (device, stream) pair")
    bytes: Ints = column("bytes", "size of a copy, a fill or a collective's message, else 0")
    message: Ints = column("row of messages", "the arguments of a collective; 0 if the kernel has none")
    blocks: Ints = column("count", "thread blocks of the grid; 0 if not recorded")
    occupancy: Ints = column("percent", "estimated occupancy, plus one; 0 if not recorded")
    launched: Bools = column("flag", "True if the launching call was recorded")
    call: Ints = column("row of calls", "the launching call; valid only if launched")

    def issued(self, calls: Calls) -> Ints:
        """Returns for each operation the start of the launching call in ns, or of the operation if the call is unknown.

        `calls` must be the table that the column `call` refers to.
        """
        return np.where(self.launched, calls.start[self.call], self.start) if len(calls) else self.start

    def left_over(self) -> Bools:
        """Returns a mask of the operations: True if the operation was launched before the recording started.

        This is the case if the launching call is not recorded, and the operation starts before all operations of the
        same stream with a recorded call, because a stream runs operations in the order in which they are launched.
        """
        queue = self.queue[:]
        first = np.full(int(queue.max(initial=0)) + 1, np.iinfo(np.int64).min)
        launched = np.flatnonzero(self.launched)[::-1]  # the last assignment, of the first operation, is kept
        first[queue[launched]] = self.start[launched]
        return np.asarray(~self.launched & (self.start < first[queue]), np.bool_)


def device_ops_of(events: Events, names: tuple[str, ...], calls: Calls) -> DeviceOps:
    """Returns the kernels, copies and fills of all devices.

    `names` are the interned names of `events`. `calls` are the runtime and driver calls of the host.
    """
    on_device = np.zeros(len(Kind), np.bool_)
    on_device[list(DEVICE_KINDS)] = True
    rows = events.take(np.flatnonzero(look_up(on_device, events.kind)))
    launched, call = _launches(rows.correlation, calls)
    return DeviceOps(
        start=rows.start,
        end=rows.end[:],
        work=packed(_work(rows, names)),
        name=packed(rows.name),
        device=packed(rows.device),
        queue=packed(rows.thread),
        bytes=rows.bytes,
        message=rows.message,
        blocks=rows.blocks,
        occupancy=packed(rows.occupancy),
        launched=launched,
        call=call,
    )


def _launches(correlation: Ints, calls: Calls) -> tuple[Bools, Ints]:
    """Returns two arrays with an element per id in `correlation`: True if a call has this id, and the row of this call.

    The row is undefined if no call has the id. Operations that one graph launch starts all have the same id.
    """
    if not len(calls):
        return np.zeros(len(correlation), np.bool_), np.zeros(len(correlation), np.int64)
    order = np.argsort(calls.correlation, kind="stable")
    index = np.minimum(np.searchsorted(calls.correlation[order], correlation), len(order) - 1)
    call = order[index]
    return (calls.correlation[call] == correlation) & (correlation != 0), call.astype(np.int64)


def _work(rows: Events, names: tuple[str, ...]) -> Ints:
    kernels = np.zeros(len(names), np.int64)
    copies = np.zeros(len(names), np.int64)
    for name in distinct_values(rows.name[rows.kind == Kind.KERNEL]):
        word = first_match(kernel_patterns(), names[name])
        kernels[name] = Work[word.upper()] if word else Work.UNKNOWN
    for name in distinct_values(rows.name[rows.kind == Kind.MEMCPY]):
        copies[name] = _copy_direction(names[name])
    fills = np.full(len(rows), int(Work.DEVICE_COPY))
    return np.where(
        rows.kind == Kind.KERNEL, kernels[rows.name], np.where(rows.kind == Kind.MEMCPY, copies[rows.name], fills)
    )


def _copy_direction(name: str) -> Work:
    """Returns the kind of work of a copy with this name, such as "Memcpy HtoD (Pageable -> Device)"."""
    if "DtoH" in name:
        return Work.DOWNLOAD
    if "HtoD" in name or "HtoH" in name:
        return Work.UPLOAD
    return Work.PEER_COPY if "PtoP" in name or "P2P" in name else Work.DEVICE_COPY


WORK_OF = {"contraction": Work.CONTRACTION, "collective": Work.COLLECTIVE, "pointwise": Work.STREAMING}
# torch's own operators that knowledge/operators.toml does not list stream memory. Custom operators stay unknown.
_TORCHS_OWN = "aten::"


def work_of_operator(name: str) -> Work:
    """Returns the kind of work of the operator `name`, as listed in knowledge/operators.toml.

    For an operator that is not listed, returns STREAMING if its name begins with "aten::", otherwise UNKNOWN.
    """
    kind = first_match(operator_patterns(), name)
    if kind is not None:
        return WORK_OF[kind]
    return Work.STREAMING if name.startswith(_TORCHS_OWN) else Work.UNKNOWN


def work_from_operators(work: Ints, launched: Bools, operator: Ints, names: tuple[str, ...]) -> Ints:
    """Returns a copy of `work` in which UNKNOWN entries are replaced by the kind of work of the launching operator.

    `work`, `launched` and `operator` have one element per device operation. `launched` is True if the operator that
    launched the operation was recorded. `operator` is the row of this operator's name in `names`; it is valid only if
    `launched` is True.
    """
    unknown = np.flatnonzero(launched & (work == Work.UNKNOWN))
    first, which = distinct_rows(operator[unknown])
    classified = np.array([work_of_operator(names[name]) for name in operator[unknown[first]].tolist()], np.int64)
    work = np.array(work)
    work[unknown] = classified[which]
    return work
