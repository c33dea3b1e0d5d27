"""Measures of what a compiler has done already: fused kernels, and graphs that are replayed with one call."""

import re

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.measures.trace.window import device_work, host_calls, in_host_steps, with_example
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS
from tb_bottleneck.trace.runtime_calls import Role

_NO_DEVICE = Missing("the work ran on the CPU: there are no kernels")
# Kernels that torch.compile's code generator writes (pytorch torch/_inductor/codegen/triton.py).
_COMPILED = re.compile(r"^triton_(?:poi|per|red|tem|for|mm|bmm)_")


def compiled_kernels(recording: Recording) -> Measure | Missing:
    """Share of the kernels that torch.compile wrote."""
    if not recording.on_device:
        return _NO_DEVICE
    ops = device_work(recording, *COMPUTE_KERNELS)
    wanted = [name for name in np.unique(ops.name).tolist() if _COMPILED.search(recording.trace.names[name])]
    compiled = ops.take(np.isin(ops.name, wanted))
    return with_example(len(compiled) / max(len(ops), 1), "share", "kernels", compiled.start, compiled.end)


def graph_breaks(recording: Recording) -> Measure | Missing:
    """Values per step that the host reads from the device: a graph cannot be captured across such a read.

    Missing where there is none: then nothing is in the way.
    """
    if not recording.on_device:
        return _NO_DEVICE
    calls = recording.trace.calls
    reads = recording.trace.reads & in_host_steps(recording, calls.start)
    if not reads.any():
        return Missing("no value is read from the device")
    return with_example(
        float(reads.sum()) / len(recording.steps), "count", "step", calls.start[reads], calls.end[reads]
    )


def graph_launches(recording: Recording) -> Measure | Missing:
    """Calls per step that replay a captured graph."""
    if not recording.on_device:
        return _NO_DEVICE
    calls = host_calls(recording, Role.LAUNCH)
    wanted = [name for name in np.unique(calls.name).tolist() if "GraphLaunch" in recording.trace.names[name]]
    calls = calls.take(np.isin(calls.name, wanted))
    return with_example(len(calls) / len(recording.steps), "count", "step", calls.start, calls.end)
