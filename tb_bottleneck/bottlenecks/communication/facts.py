"""Measures of the collectives: the size of their messages, their bandwidth, and how much of their time overlaps with
other work."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.cpu_collectives import host_collectives, message_bytes
from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.arrays import distinct_values, heaviest_value
from tb_bottleneck.base.intervals import clip, intersect, union
from tb_bottleneck.base.measure import Measure, Missing, text_measure
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.base.units import NS_PER_S
from tb_bottleneck.bottlenecks.transfer.facts import slot_rate
from tb_bottleneck.knowledge.gpus import USABLE_LINK_SHARE
from tb_bottleneck.measures.trace.window_rows import device_work, host_rows, with_example
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.kernel_names import name_matches, short
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Bools, Ints, Table, column

NO_COLLECTIVE = Missing("no collective was recorded")
NO_DATA_PARALLEL = Missing("the model is not a DistributedDataParallel, or its forward pass was not recorded")
NO_SIZES = Missing("message sizes were not recorded; torch 2.3 and newer record them")
# Smaller messages are limited by the latency of a collective, not by the link (nccl-tests: curves flatten from here).
LARGE_MESSAGE_BYTES = 4 << 20
# Devices take turns if at least this share of the other devices' working time is while this device is idle.
TURN_SHARE = 0.75
# With at least MANY_COLLECTIVES collectives per step and messages below SMALL_BYTES, start-up takes much of the time.
# DistributedDataParallel's own first bucket has 1 MB (torch/nn/parallel/distributed.py). The number is a choice.
SMALL_BYTES, MANY_COLLECTIVES = 1_000_000, 20
_POINT_TO_POINT = ("nccl:send", "nccl:recv", "nccl:coalesced")
DATA_PARALLEL_FORWARD = "DistributedDataParallel.forward"
_BACKWARD = "autograd::engine::evaluate_function"


@dataclass(frozen=True, eq=False)
class CollectiveRows(Table):
    """The collectives of a window, one row each: collectives on the device or, if there are none, collectives run by
    the host."""

    start: Ints = column("ns", "begin")
    end: Ints = column("ns", "end")
    name: Ints = column("row of names", "kernel or record_function")
    bytes: Ints = column("bytes", "size of the message; 0 if not recorded")
    issued: Ints = column("ns", "when the program issued it; its start if that is not known")


@memoized
def collectives_of(recording: Recording) -> CollectiveRows:
    """Returns the collectives that run in the window."""
    ops, trace = device_work(recording, Work.COLLECTIVE), recording.trace
    if len(ops):
        return CollectiveRows(ops.start, ops.end, ops.name, ops.bytes, ops.issued(trace.calls))
    rows = host_collectives(trace)
    start, end = trace.events.start[rows], trace.events.end[rows]
    rows = rows[(end > recording.steps.begin) & (start < recording.steps.end)]
    start = trace.events.start[rows]
    return CollectiveRows(start, trace.events.end[rows], trace.events.name[rows], message_bytes(trace, rows), start)


def collectives(recording: Recording) -> Measure | Missing:
    """Number of collectives per step."""
    rows = collectives_of(recording)
    return with_example(len(rows) / len(recording.steps), "count", "step", rows.start, rows.end)


def costliest_collective(recording: Recording) -> Measure | Missing:
    """The collective that takes the most time, by the name of its kernel or record_function."""
    rows = collectives_of(recording)
    if not len(rows):
        return NO_COLLECTIVE
    name = heaviest_value(rows.name, rows.end - rows.start)
    return text_measure(short(recording.trace.names[name]), int((rows.name == name).sum()))


def message_size(recording: Recording) -> Measure | Missing:
    """The median size of the messages of collectives (bytes)."""
    rows = collectives_of(recording)
    if not len(rows):
        return NO_COLLECTIVE
    sized = rows.take(rows.bytes > 0)
    if not len(sized):
        return NO_SIZES
    return with_example(float(np.median(sized.bytes)), "bytes", "collective", sized.start, sized.end)


def collective_bytes(recording: Recording) -> Measure | Missing:
    """Bytes per step in the messages of collectives."""
    rows = collectives_of(recording)
    if not len(rows):
        return NO_COLLECTIVE
    if not (rows.bytes > 0).any():
        return NO_SIZES
    return with_example(float(rows.bytes.sum()) / len(recording.steps), "bytes", "step", rows.start, rows.end)


def ranks(recording: Recording) -> Measure | Missing:
    """Number of ranks of the job."""
    size = recording.trace.header.world_size
    return Measure(float(size), "count", "job") if size else Missing("the number of ranks was not recorded")


def hidden_collectives(recording: Recording) -> Measure | Missing:
    """Share of the collectives' time that overlaps with other work. Their time without overlap is the time of the
    regime `communication`."""
    rows, steps = collectives_of(recording), recording.steps
    running = clip(union(rows.start, rows.end), steps.begin, steps.end)
    if not running.total():
        return NO_COLLECTIVE
    hidden = 1 - recording.account.ns[Regime.COMMUNICATION] / running.total()
    return Measure(max(hidden, 0.0), "share", "collectives", len(rows))


def shard_collectives(recording: Recording) -> Measure | Missing:
    """Share of the collectives' time in all-gathers and reduce-scatters, which FSDP and ZeRO use for shards of the
    model."""
    return _time_in(recording, "allgather", "all_gather", "reducescatter", "reduce_scatter")


def all_to_all_collectives(recording: Recording) -> Measure | Missing:
    """Share of the collectives' time in all-to-alls (every rank sends to every other rank), as for distributed
    embedding tables and mixtures of experts.

    Point-to-point operations are included, because their kernels have the same names (see
    `point_to_point_collectives`).
    """
    return _time_in(recording, "sendrecv", "alltoall", "all_to_all", "deepep", "deep_ep")


def point_to_point_collectives(recording: Recording) -> Measure | Missing:
    """Share of the collectives' time in which one rank sends to one other rank, as between the stages of a pipeline.

    The kernels have the same names as those of an all-to-all. The record_function of the operation distinguishes them
    (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp: "nccl:send 0->1"; batches of operations are "nccl:coalesced").
    """
    rows = collectives_of(recording)
    length = rows.end - rows.start
    if not length.sum():
        return NO_COLLECTIVE
    marks = host_rows(recording, lambda name: name.startswith(_POINT_TO_POINT), Kind.ANNOTATION, Kind.CPU_OP)
    sending = union(recording.trace.events.start[marks], recording.trace.events.end[marks])
    chosen = names_with(recording, rows.name, "sendrecv") & sending.contains(rows.issued)
    share = float(length[chosen].sum() / length.sum())
    return with_example(share, "share", "collectives", rows.start[chosen], rows.end[chosen])


def collectives_after_backward(recording: Recording) -> Measure | Missing:
    """Share of the collectives' time in collectives that are issued after the last backward operator of their step."""
    rows = collectives_of(recording)
    backward = host_rows(recording, lambda name: name.startswith(_BACKWARD), Kind.CPU_OP)
    if not len(rows) or not len(backward):
        return Missing("no backward pass with collectives was recorded")
    edges, starts = recording.steps.host, recording.trace.events.start[backward]
    last = np.zeros(len(edges) + 1, np.int64)
    np.maximum.at(last, np.searchsorted(edges, starts, side="right"), starts)
    late = rows.issued > last[np.searchsorted(edges, rows.issued, side="right")]
    length = rows.end - rows.start
    if not length.sum():
        return NO_COLLECTIVE
    return Measure(float(length[late].sum() / length.sum()), "share", "collectives", int(late.sum()))


def buckets(recording: Recording) -> Measure | Missing:
    """Collectives per forward pass of DistributedDataParallel: the buckets in which it sends the gradients."""
    rows = collectives_of(recording)
    forwards = host_rows(recording, lambda name: name == DATA_PARALLEL_FORWARD, Kind.ANNOTATION, Kind.CPU_OP)
    if not len(rows):
        return NO_COLLECTIVE
    if not len(forwards):
        return NO_DATA_PARALLEL
    return with_example(len(rows) / len(forwards), "count", "forward pass", rows.start, rows.end)


def bus_bandwidth(recording: Recording) -> Measure | Missing:
    """Rate (bytes per second) at which the fastest large collective uses one link, as nccl-tests computes the rate.

    An all-reduce of n ranks moves 2 (n - 1) / n of its message over each link, other collectives move (n - 1) / n. A
    collective is large if its message has at least LARGE_MESSAGE_BYTES. The fastest one is used because it waited least
    for other ranks, so its rate is closest to the rate of the link.
    """
    rows, size = collectives_of(recording), recording.trace.header.world_size or 0
    large = rows.take((rows.bytes >= LARGE_MESSAGE_BYTES) & (rows.end > rows.start))
    if not len(large) or size < 2:
        return NO_SIZES if len(rows) else NO_COLLECTIVE
    reduces = names_with(recording, large.name, "allreduce", "all_reduce")
    factor = np.where(reduces, 2.0, 1.0) * (size - 1) / size
    rates = factor * large.bytes / (large.end - large.start) * NS_PER_S
    best = int(np.argmax(rates))
    begin, end = int(large.start[best]), int(large.end[best])
    return Measure(float(rates[best]), "bytes_per_s", "collective", len(large), begin=begin, end=end)


def slot_bandwidth(recording: Recording) -> Measure | Missing:
    """Bytes per second that copies over the device's own PCIe slot can reach. Links between devices of one machine are
    at least as fast."""
    rate = slot_rate(recording)
    if not rate:
        return Missing("the link of this device is not known")
    return Measure(rate * USABLE_LINK_SHARE, "bytes_per_s")


def backend(recording: Recording) -> Measure | Missing:
    """The backend of the process group, as text, such as nccl or gloo."""
    name = recording.trace.header.backend
    return text_measure(name) if name else Missing("the recording does not name the backend")


def data_parallel_devices(recording: Recording) -> Measure | Missing:
    """Number of devices that this process uses with DataParallel; 0 without DataParallel (count)."""
    rows = host_rows(recording, lambda name: name.startswith("DataParallel.forward"), Kind.ANNOTATION, Kind.CPU_OP)
    scatters = host_rows(
        recording, lambda name: name in ("Broadcast", "Scatter", "Gather", "ReduceAddCoalesced"), Kind.CPU_OP
    )
    used = len(distinct_values(recording.trace.all_device_ops.device))
    if used < 2 or not (len(rows) or len(scatters)):
        return Measure(0.0, "count", "process", 0)
    examples = rows if len(rows) else scatters
    events = recording.trace.events
    return with_example(float(used), "count", "process", events.start[examples], events.end[examples])


def idle_during_other_devices(recording: Recording) -> Measure | Missing:
    """Share of the window in which this device is idle and another device of this process works.

    The share is 0 if less than TURN_SHARE of the other devices' working time is in this idle time: the devices then
    mostly work at the same time. Devices take turns if the layers of a model are distributed over them, as with
    `device_map="auto"`.
    """
    ops = recording.trace.all_device_ops
    others = ops.take(ops.device != recording.trace.device_index)
    if not recording.on_device or not len(others):
        return Missing("the process drives no other device")
    busy = clip(union(others.start, others.end), recording.steps.begin, recording.steps.end)
    turns = intersect(recording.idle, busy)
    share = turns.total() / recording.account.window if turns.total() >= TURN_SHARE * busy.total() else 0.0
    return with_example(share, "share", "window", turns.starts, turns.ends)


def devices_used(recording: Recording) -> Measure | Missing:
    """Number of devices that this process uses."""
    used = len(distinct_values(recording.trace.all_device_ops.device))
    return Measure(float(used), "count", "process") if used else Missing("the work ran on the CPU")


def _time_in(recording: Recording, *words: str) -> Measure | Missing:
    """Returns the share of the collectives' time that is in collectives with one of `words` (lower case) in their
    names."""
    rows = collectives_of(recording)
    length = rows.end - rows.start
    if not length.sum():
        return NO_COLLECTIVE
    chosen = names_with(recording, rows.name, *words)
    share = float(length[chosen].sum() / length.sum())
    return with_example(share, "share", "collectives", rows.start[chosen], rows.end[chosen])


def names_with(recording: Recording, column: Ints, *words: str) -> Bools:
    """Returns a mask of `column`, which has indices of the trace's names: True if the name contains one of `words`.
    `words` are in lower case; the case of the name is ignored."""
    return name_matches(recording.trace.names, column, lambda name: any(word in name.lower() for word in words))
