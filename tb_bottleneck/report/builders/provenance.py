"""Writes into the Report who recorded it: which device, which rank of how many."""

import numpy as np

from tb_bottleneck.quality.trace_defects import fatal_defect
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.trace.header import Header
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import Trace


def set_origin(report: pb.Report, trace: Trace) -> None:
    """Who recorded this: device and rank."""
    header = trace.header
    if header.rank is not None or not header.distributed:
        report.rank = header.rank or 0
    if header.world_size is not None or not header.distributed:
        report.world_size = header.world_size or 1
    used = np.unique(trace.all_device_ops.device)
    if len(used):
        facts = header.device(trace.device_index)
        kind = "rocm" if _is_rocm(trace) else "cuda"
        report.device.MergeFrom(
            pb.Device(name=facts.name if facts else "", kind=kind, index=trace.device_index, count=len(used))
        )
    elif _worked_unseen(trace):
        # On which device the work ran was not seen; one that is described is named, and the CPU is not made up.
        name = header.devices[0].name if header.devices else ""
        foreign = bool((trace.events.kind == Kind.FOREIGN_DEVICE).any())
        kind = "other" if foreign else "rocm" if _is_rocm(trace) else "cuda"
        report.device.MergeFrom(pb.Device(name=name, kind=kind if name else ""))
    else:
        report.device.MergeFrom(pb.Device(name=_cpu_name(header), kind="cpu", count=1))


def set_unused_device(report: pb.Report, trace: Trace) -> None:
    """The device that is there and did nothing: `count` is the devices that worked, none."""
    facts = trace.header.devices[0]
    report.device.Clear()
    report.device.MergeFrom(pb.Device(name=facts.name, kind="rocm" if _is_rocm(trace) else "cuda", index=facts.index))


def _worked_unseen(trace: Trace) -> bool:
    """Whether a recording without device work may be of a run on a device all the same."""
    fatal = fatal_defect(trace, find_steps(trace))
    return fatal is not None and (fatal.code != "insufficient_data" or bool(trace.header.devices))


def _is_rocm(trace: Trace) -> bool:
    return trace.header.rocm or any(
        trace.names[name].startswith("hip") for name in np.unique(trace.calls.name).tolist()
    )


def _cpu_name(header: Header) -> str:
    name = header.context.get("device_name")
    return name[:200] if isinstance(name, str) and header.context.get("device_kind") == "cpu" else "CPU"
