"""How much of the device the kernels of a trace occupy: tensor cores, multiprocessors, occupancy.

The definitions are those of torch-tb-profiler: SM efficiency of a kernel is min(blocks / multiprocessors, 1), of a run
the mean weighted by the kernels' times, over the whole time; occupancy is the mean weighted by the kernels' times.
"""

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.intervals import union
from tb_bottleneck.knowledge.precisions import precision_of
from tb_bottleneck.measures.efficiency.figure import Figure, Figures, known, unknown
from tb_bottleneck.measures.efficiency.utilisation import MAX_UNKNOWN_SHARE
from tb_bottleneck.measures.trace.window import device_work
from tb_bottleneck.roofline.device_peaks import has_matrix_units
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, DeviceOps, Work
from tb_bottleneck.trace.name_filter import passing_names
from tb_bottleneck.trace.table import Bools, Ints
from tb_bottleneck.units import share_text

_FIELDS = ("tensor_share", "sm_efficiency", "occupancy")


def device_use(recording: Recording) -> Figures:
    """Returns the three figures."""
    if not recording.on_device:
        return dict.fromkeys(_FIELDS, unknown("on_cpu"))
    ops = device_work(recording, *COMPUTE_KERNELS)
    length = ops.end - ops.start
    if not length.sum():
        return dict.fromkeys(_FIELDS, unknown("no_kernels"))
    return {
        "tensor_share": _tensor_share(recording, ops, length),
        "sm_efficiency": _sm_efficiency(recording, ops, length),
        "occupancy": _occupancy(ops, length),
    }


def _tensor_share(recording: Recording, ops: DeviceOps, length: Ints) -> Figure:
    if not has_matrix_units(recording.trace):
        return unknown("no_tensor_cores")
    names = recording.trace.names
    tensor = passing_names(names, ops.name, lambda name: _unit(name) == "tensor")[ops.name]
    vector = passing_names(names, ops.name, lambda name: _unit(name) == "vector")[ops.name]
    contracts = np.isin(ops.work, (Work.CONTRACTION, Work.UNKNOWN))
    lost = _share(length, contracts & ~tensor & ~vector)
    if lost > MAX_UNKNOWN_SHARE:
        return unknown("unit_unknown", share=share_text(lost))
    return known(_share(length, tensor), "kernel_names")


def _sm_efficiency(recording: Recording, ops: DeviceOps, length: Ints) -> Figure:
    processors = recording.trace.multiprocessors
    is_known = ops.blocks > 0
    if processors is None:
        return unknown("no_multiprocessors")
    if _share(length, ~is_known) > MAX_UNKNOWN_SHARE:
        return unknown("no_grids")
    filled = np.minimum(ops.blocks / processors, 1.0)
    of_kernels = float(np.average(filled[is_known], weights=length[is_known]))
    busy = union(ops.start, ops.end).covered(recording.steps.begin, recording.steps.end)
    return known(of_kernels * float(busy) / recording.account.window, "grids", processors=f"{processors:,}")


def _occupancy(ops: DeviceOps, length: Ints) -> Figure:
    is_known = ops.occupancy > 0
    if _share(length, ~is_known) > MAX_UNKNOWN_SHARE:
        return unknown("no_occupancy")
    mean = float(np.average(ops.occupancy[is_known] - 1, weights=length[is_known])) / 100
    return known(min(mean, 1.0), "estimated_occupancy")


def _share(length: Ints, rows: Bools) -> float:
    return float(length[rows].sum() / length.sum())


def _unit(name: str) -> str:
    precision = precision_of(name)
    return precision.unit if precision is not None else ""
