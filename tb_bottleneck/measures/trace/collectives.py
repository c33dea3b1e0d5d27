"""Measures of the collectives: how large their messages are, how fast they go, and what of them computing hides."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.cpu_collectives import host_collectives
from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.intervals import clip, intersect, union
from tb_bottleneck.knowledge.pcie import USABLE_LINK_SHARE
from tb_bottleneck.measure import Measure, Missing, text_measure
from tb_bottleneck.measures.trace.copies import slot_rate
from tb_bottleneck.measures.trace.window import device_work, host_rows, with_example
from tb_bottleneck.regime import Regime
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.kernel_names import short
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Bools, Ints, Table, column
from tb_bottleneck.units import NS_PER_S

NO_COLLECTIVE = Missing("no collective was recorded")
NO_SIZES = Missing("message sizes were not recorded; torch 2.3 and newer record them")
# Smaller messages are bounded by the latency of a collective, not by the link (nccl-tests: curves flatten from there).
LARGE_MESSAGE_BYTES = 4 << 20
# Devices take turns where one of them does less than a quarter of its work beside the other.
IN_TURNS = 0.75
_STAGED = ("nccl:send", "nccl:recv", "nccl:coalesced")
_BACKWARD = "autograd::engine::evaluate_function"


@dataclass(frozen=True, eq=False)
class CollectiveRows(Table):
    """The collectives of a window, those of the device or, where it has none, those that the host exchanges itself."""

    start: Ints = column("ns", "begin")
    end: Ints = column("ns", "end")
    name: Ints = column("row of names", "kernel or record_function")
    bytes: Ints = column("bytes", "the message; 0 where not recorded")
    issued: Ints = column("ns", "when the program asked for it; the begin where that is not known")


@memoized
def collectives_of(recording: Recording) -> CollectiveRows:
    """The collectives of the window."""
    ops, trace = device_work(recording, Work.COLLECTIVE), recording.trace
    if len(ops):
        return CollectiveRows(ops.start, ops.end, ops.name, ops.bytes, ops.issued(trace.calls))
    rows = host_collectives(trace)
    start, end = trace.events.start[rows], trace.events.end[rows]
    rows = rows[(end > recording.steps.begin) & (start < recording.steps.end)]
    start = trace.events.start[rows]
    return CollectiveRows(start, trace.events.end[rows], trace.events.name[rows], np.zeros(len(rows), np.int64), start)


def collectives(recording: Recording) -> Measure | Missing:
    """Collectives per step."""
    found = collectives_of(recording)
    return with_example(len(found) / len(recording.steps), "count", "step", found.start, found.end)


def costliest_collective(recording: Recording) -> Measure | Missing:
    """The collective that takes most time, by the name of its kernel or record_function."""
    found = collectives_of(recording)
    if not len(found):
        return NO_COLLECTIVE
    name = int(np.argmax(np.bincount(found.name, weights=found.end - found.start)))
    return text_measure(short(recording.trace.names[name]), int((found.name == name).sum()))


def message_size(recording: Recording) -> Measure | Missing:
    """The median message of a collective."""
    found = collectives_of(recording)
    if not len(found):
        return NO_COLLECTIVE
    sized = found.take(found.bytes > 0)
    if not len(sized):
        return NO_SIZES
    return with_example(float(np.median(sized.bytes)), "bytes", "collective", sized.start, sized.end)


def collective_bytes(recording: Recording) -> Measure | Missing:
    """Bytes per step in collectives."""
    found = collectives_of(recording)
    if not len(found):
        return NO_COLLECTIVE
    if not (found.bytes > 0).any():
        return NO_SIZES
    return with_example(float(found.bytes.sum()) / len(recording.steps), "bytes", "step", found.start, found.end)


def ranks(recording: Recording) -> Measure | Missing:
    """Ranks of the job."""
    size = recording.trace.header.world_size
    return (
        Measure(float(size), "count", "job") if size else Missing("the recording does not say how many ranks there are")
    )


def hidden_collectives(recording: Recording) -> Measure | Missing:
    """Share of the collectives' time that runs beside work; what is exposed of them is the regime's own time."""
    found, steps = collectives_of(recording), recording.steps
    talking = clip(union(found.start, found.end), steps.begin, steps.end)
    if not talking.total():
        return NO_COLLECTIVE
    hidden = 1 - recording.account.ns[Regime.COMMUNICATION] / talking.total()
    return Measure(max(hidden, 0.0), "share", "collectives", len(found))


def shard_collectives(recording: Recording) -> Measure | Missing:
    """Share of the collectives' time that gathers shards or scatters sums of them, as FSDP and ZeRO do."""
    return _time_in(recording, "allgather", "all_gather", "reducescatter", "reduce_scatter")


def all_to_all_collectives(recording: Recording) -> Measure | Missing:
    """Share of the collectives' time in which every rank sends to every other: embedding tables, experts."""
    return _time_in(recording, "sendrecv", "alltoall", "all_to_all", "deepep", "deep_ep")


def point_to_point_collectives(recording: Recording) -> Measure | Missing:
    """Share of the collectives' time in which one rank sends to one other, as the stages of a pipeline do.

    Their kernels are those of an exchange between all ranks; the operation's record_function tells them apart
    (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp: "nccl:send 0->1"; batches of them are "nccl:coalesced").
    """
    found = collectives_of(recording)
    length = found.end - found.start
    if not length.sum():
        return NO_COLLECTIVE
    rows = host_rows(recording, lambda name: name.startswith(_STAGED), Kind.ANNOTATION, Kind.CPU_OP)
    asked = union(recording.trace.events.start[rows], recording.trace.events.end[rows])
    mine = _names_with(recording, found.name, "sendrecv") & asked.contains(found.issued)
    return with_example(
        float(length[mine].sum() / length.sum()), "share", "collectives", found.start[mine], found.end[mine]
    )


def collectives_after_backward(recording: Recording) -> Measure | Missing:
    """Share of the collectives' time in those that are asked for after the last backward operator of their step."""
    found = collectives_of(recording)
    backward = host_rows(recording, lambda name: name.startswith(_BACKWARD), Kind.CPU_OP)
    if not len(found) or not len(backward):
        return Missing("no backward pass with collectives was recorded")
    edges, starts = recording.steps.host, recording.trace.events.start[backward]
    last = np.zeros(len(edges) + 1, np.int64)
    np.maximum.at(last, np.searchsorted(edges, starts, side="right"), starts)
    late = found.issued > last[np.searchsorted(edges, found.issued, side="right")]
    length = found.end - found.start
    if not length.sum():
        return NO_COLLECTIVE
    return Measure(float(length[late].sum() / length.sum()), "share", "collectives", int(late.sum()))


def bus_bandwidth(recording: Recording) -> Measure | Missing:
    """Bytes per second on the link of the fastest large collective, as nccl-tests counts them.

    An all-reduce of n ranks moves 2 (n - 1) / n of its message over each link, other collectives (n - 1) / n. The
    fastest one waited least for its peers, so it is nearest to what the link gives.
    """
    found, size = collectives_of(recording), recording.trace.header.world_size or 0
    large = found.take((found.bytes >= LARGE_MESSAGE_BYTES) & (found.end > found.start))
    if not len(large) or size < 2:
        return NO_SIZES if len(found) else NO_COLLECTIVE
    reduces = _names_with(recording, large.name, "allreduce", "all_reduce")
    factor = np.where(reduces, 2.0, 1.0) * (size - 1) / size
    rates = factor * large.bytes / (large.end - large.start) * NS_PER_S
    best = int(np.argmax(rates))
    begin, end = int(large.start[best]), int(large.end[best])
    return Measure(float(rates[best]), "bytes_per_s", "collective", len(large), begin=begin, end=end)


def slot_bandwidth(recording: Recording) -> Measure | Missing:
    """Bytes per second that the device's own slot carries: a link between devices of one machine gives no less."""
    told = slot_rate(recording)
    return Measure(told * USABLE_LINK_SHARE, "bytes_per_s") if told else Missing("the link of this device is not known")


def backend(recording: Recording) -> Measure | Missing:
    """The process group's backend as the recording names it."""
    told = recording.trace.header.backend
    return text_measure(told) if told else Missing("the recording does not name the backend")


def data_parallel_devices(recording: Recording) -> Measure | Missing:
    """Devices that this one process drives with DataParallel; 0 where it does not."""
    rows = host_rows(recording, lambda name: name.startswith("DataParallel.forward"), Kind.ANNOTATION, Kind.CPU_OP)
    scatters = host_rows(
        recording, lambda name: name in ("Broadcast", "Scatter", "Gather", "ReduceAddCoalesced"), Kind.CPU_OP
    )
    used = len(np.unique(recording.trace.all_device_ops.device))
    if used < 2 or not (len(rows) or len(scatters)):
        return Measure(0.0, "count", "process", 0)
    shows = rows if len(rows) else scatters
    events = recording.trace.events
    return with_example(float(used), "count", "process", events.start[shows], events.end[shows])


def idle_during_other_devices(recording: Recording) -> Measure | Missing:
    """Share of the window in which this device idles and another one that this process drives works; 0 where they
    mostly work side by side.

    Layers that were put on several devices, one after the other, take turns: so does `device_map="auto"`.
    """
    ops = recording.trace.all_device_ops
    others = ops.take(ops.device != recording.trace.device_index)
    if not recording.on_device or not len(others):
        return Missing("the process drives no other device")
    busy = clip(union(others.start, others.end), recording.steps.begin, recording.steps.end)
    turns = intersect(recording.idle, busy)
    share = turns.total() / recording.account.window if turns.total() >= IN_TURNS * busy.total() else 0.0
    return with_example(share, "share", "window", turns.starts, turns.ends)


def devices_used(recording: Recording) -> Measure | Missing:
    """Devices that this process put work on."""
    used = len(np.unique(recording.trace.all_device_ops.device))
    return Measure(float(used), "count", "process") if used else Missing("the work ran on the CPU")


def _time_in(recording: Recording, *words_wanted: str) -> Measure | Missing:
    """Share of the collectives' time in those whose names hold one of these words."""
    found = collectives_of(recording)
    length = found.end - found.start
    if not length.sum():
        return NO_COLLECTIVE
    mine = _names_with(recording, found.name, *words_wanted)
    share = float(length[mine].sum() / length.sum())
    return with_example(share, "share", "collectives", found.start[mine], found.end[mine])


def _names_with(recording: Recording, rows: Ints, *words_wanted: str) -> Bools:
    names, which = np.unique(rows, return_inverse=True)
    told = [any(word in recording.trace.names[name].lower() for word in words_wanted) for name in names.tolist()]
    return np.array(told, np.bool_)[which]
