"""Measures of compilation already in use: kernels written by torch.compile, and captured graphs."""

import re

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.measures.trace.window import device_work, host_calls, host_rows, in_host_steps, with_example
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.runtime_calls import Role

_NO_DEVICE = Missing("the work ran on the CPU: there are no kernels")
# Blocks around the code that torch.compile has generated (pytorch torch/_dynamo/eval_frame.py and, in older versions
# the only ones, torch/_inductor/codecache.py).
_REGIONS = ("Torch-Compiled Region", "## Call CompiledFxGraph")
_REGION_KINDS = (Kind.ANNOTATION, Kind.CPU_OP)
# Kernels written by torch.compile's code generator (pytorch torch/_inductor/codegen/triton.py).
_COMPILED = re.compile(r"^triton_(?:poi|per|red|tem|for|mm|bmm)_")


def compiled_kernels(recording: Recording) -> Measure | Missing:
    """Share of the kernels that were written by torch.compile."""
    if not recording.on_device:
        return _NO_DEVICE
    ops = device_work(recording, *COMPUTE_KERNELS)
    compiled = ops.take(name_matches(recording.trace.names, ops.name, lambda name: bool(_COMPILED.search(name))))
    return with_example(len(compiled) / max(len(ops), 1), "share", "kernels", compiled.start, compiled.end)


def compiled_regions(recording: Recording) -> Measure | Missing:
    """Compiled regions that run per step.

    Several of them are the parts of a model with graph breaks, or several models. Missing if there is none: the model
    is not compiled.
    """
    rows = host_rows(recording, lambda name: name.startswith(_REGIONS[0]), *_REGION_KINDS)
    if not len(rows):
        rows = host_rows(recording, lambda name: name.startswith(_REGIONS[1]), *_REGION_KINDS)
    if not len(rows):
        return Missing("no compiled region was recorded")
    events = recording.trace.events
    per_step = len(rows) / len(recording.steps)
    return with_example(per_step, "count", "step", events.start[rows], events.end[rows])


def graph_breaks(recording: Recording) -> Measure | Missing:
    """Values per step that the host reads from the device: no graph can be captured across such a read.

    Missing if there is none: nothing prevents the capture.
    """
    if not recording.on_device:
        return _NO_DEVICE
    calls = recording.trace.calls
    reads = recording.trace.reads & in_host_steps(recording, calls.start)
    if not reads.any():
        return Missing("no value is read from the device")
    per_step = float(reads.sum()) / len(recording.steps)
    return with_example(per_step, "count", "step", calls.start[reads], calls.end[reads])


def graph_launches(recording: Recording) -> Measure | Missing:
    """Calls per step that replay a captured graph."""
    if not recording.on_device:
        return _NO_DEVICE
    calls = host_calls(recording, Role.LAUNCH)
    calls = calls.take(name_matches(recording.trace.names, calls.name, lambda name: "GraphLaunch" in name))
    return with_example(len(calls) / len(recording.steps), "count", "step", calls.start, calls.end)
