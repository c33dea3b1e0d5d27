"""Measures of torch.compile and captured graphs: compiled kernels, and what runs outside of compiled code."""

import re
from collections import defaultdict

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Measure, Missing, Record, text_measure
from tb_bottleneck.bottlenecks.launch.compile_log import compile_log
from tb_bottleneck.measures.trace.window_rows import device_work, host_calls, host_rows, in_host_steps, with_example
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS
from tb_bottleneck.trace.frames import frame_parts, is_user_frame
from tb_bottleneck.trace.kernel_names import cut, name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Rows, by_thread

# The wrapper of a compiled function (pytorch torch/_dynamo/eval_frame.py).
_WRAPPER = re.compile(r"(?:^|/)torch/_dynamo/eval_frame\.py\(\d+\): compile_wrapper$")
_COMPILED = re.compile(r"^Torch-Compiled Region|\(dynamo_timed\)$|^CompiledFunction$|^## Call CompiledFxGraph")
_MAX_LISTED, _MAX_FRAMES = 3, 100
_AT_LINE = re.compile(r"line (\d{1,9})(?:, |: )")
UNKNOWN = "the reason was not recorded; the most common one is a graph break in a loop"


class Uncompiled(Record, frozen=True):
    """A function that torch runs without compiling it, with the reason. `line` is the first line of the function.
    `function`, `file` and `reason` are untrusted text."""

    function: str
    file: str
    line: int
    reason: str


@memoized
def uncompiled(recording: Recording) -> tuple[Uncompiled, ...]:
    """Returns the functions for which torch.compile was called, but of which no call in the window ran compiled code.

    torch runs a whole function without compiled code if a graph break is inside a loop or a `with` block, where torch
    cannot resume (pytorch torch/_dynamo/symbolic_convert.py). Only Python frames show such a function: torch's wrapper
    is called, but no compiled region begins inside the wrapper. All releases of torch that record the wrapper's frame
    also record every compiled region. Empty if Python frames were not recorded.
    """
    trace, events = recording.trace, recording.trace.events
    wrappers = host_rows(recording, lambda name: bool(_WRAPPER.search(name)), Kind.PYTHON)
    if not len(wrappers):
        return ()
    compiled = host_rows(recording, lambda name: bool(_COMPILED.search(name)), Kind.CPU_OP, Kind.ANNOTATION)
    starts = np.sort(events.start[compiled])
    inside = np.searchsorted(starts, events.end[wrappers]) - np.searchsorted(starts, events.start[wrappers])
    ran: dict[tuple[str, int, str], int] = defaultdict(int)
    frames = trace.rows(Kind.PYTHON)
    first = np.searchsorted(events.start[frames], events.start[wrappers])
    for wrapper, count, at in zip(wrappers.tolist(), inside.tolist(), first.tolist(), strict=True):
        frame = _called(recording, frames[at : at + _MAX_FRAMES], wrapper)
        if frame:
            ran[frame_parts(frame)] += count
    log = compile_log(trace.header.context)
    return tuple(
        Uncompiled(cut(function), cut(file), line, log.failure_of(file, line) or UNKNOWN)
        for (file, line, function), count in ran.items()
        if not count
    )


def eager_functions(recording: Recording) -> Measure | Missing:
    """The functions that run without compiled code although torch.compile was called for them, as text."""
    found = uncompiled(recording)
    if not found:
        return Missing("no function was recorded that torch.compile left uncompiled")
    return text_measure("; ".join(map(_in_words, found[:_MAX_LISTED])), len(found))


def _in_words(entry: Uncompiled) -> str:
    """Returns a function that torch did not compile, its place, and why, as text. The line is the one that the reason
    names, otherwise the first line of the function."""
    stated = _AT_LINE.match(entry.reason)
    line, reason = (stated[1], entry.reason[stated.end() :]) if stated else (entry.line, entry.reason)
    return f"{entry.function} ({entry.file}:{line}): {reason}"


def _called(recording: Recording, frames: Rows, wrapper: int) -> str:
    """Returns the name of the first frame of the user's program in `frames` that is inside the frame `wrapper`; "" if
    there is none. `frames` and `wrapper` are event rows."""
    trace, events = recording.trace, recording.trace.events
    inside = frames[(events.thread[frames] == events.thread[wrapper]) & (events.end[frames] <= events.end[wrapper])]
    names = (trace.names[events.name[row]] for row in inside.tolist())
    return next((name for name in names if is_user_frame(name)), "")


TIMED = "(dynamo_timed)"
"""Suffix of the names that torch gives to the phases of a compilation in a trace."""

_MAX_OUTSIDE = 5
# Rows of compiled code, and of torch.compile's own checks before it.
_IN_GRAPHS = (
    "Torch-Compiled Region",
    "TorchDynamo Cache Lookup",
    "dynamo",
    "Pregraph bytecode",
    "## Call CompiledFxGraph",
    "CompiledFunction",
    "autograd::engine::evaluate_function: CompiledFunction",
)


class OutsideOperator(Record, frozen=True):
    """An operator that is called outside of compiled regions. `calls` is the number of its calls and `ns` its host
    time, in all steps of the window."""

    name: str
    calls: int
    ns: float


def operators_outside(recording: Recording, regions: Rows) -> tuple[OutsideOperator, ...]:
    """Returns the operators that are neither inside another operator nor inside one of `regions` (event rows of
    compiled regions), longest host time first; at most _MAX_OUTSIDE. Empty if there are no `regions`."""
    trace, events = recording.trace, recording.trace.events
    if not len(regions):
        return ()
    rows = host_rows(recording, lambda name: not name.endswith(TIMED), Kind.CPU_OP)
    rows = np.union1d(rows, regions)
    calls: dict[int, int] = defaultdict(int)
    spent: dict[int, float] = defaultdict(float)
    for own in by_thread(rows, events.thread).values():
        parent = nest(events.start[own], events.end[own]).parent
        outermost = own[parent == np.arange(len(own))]
        for name, ns in zip(events.name[outermost].tolist(), events.duration[outermost].tolist(), strict=True):
            calls[name] += 1
            spent[name] += ns
    ordered = sorted(spent, key=lambda name: -spent[name])
    ordered = [name for name in ordered if not trace.names[name].startswith(_IN_GRAPHS)][:_MAX_OUTSIDE]
    return tuple(OutsideOperator(cut(trace.names[name]), calls[name], spent[name]) for name in ordered)


_NO_DEVICE = Missing("the work ran on the CPU: there are no kernels")
# Blocks around the code that torch.compile has generated (pytorch torch/_dynamo/eval_frame.py and
# torch/_inductor/codecache.py). Older versions of torch record only the blocks of codecache.py.
_REGIONS = ("Torch-Compiled Region", "## Call CompiledFxGraph")
_REGION_KINDS = (Kind.ANNOTATION, Kind.CPU_OP)
# Kernels written by torch.compile's code generator (pytorch torch/_inductor/codegen/triton.py).
_OF_COMPILER = re.compile(r"^triton_(?:poi|per|red|tem|for|mm|bmm)_")


def compiled_kernels(recording: Recording) -> Measure | Missing:
    """Share of the kernels, by number, that torch.compile generated."""
    if not recording.on_device:
        return _NO_DEVICE
    ops = device_work(recording, *COMPUTE_KERNELS)
    compiled = ops.take(name_matches(recording.trace.names, ops.name, lambda name: bool(_OF_COMPILER.search(name))))
    return with_example(len(compiled) / max(len(ops), 1), "share", "kernels", compiled.start, compiled.end)


def compiled_regions(recording: Recording) -> Measure | Missing:
    """Runs of compiled regions per step (count); missing if no compiled region was recorded.

    There are several regions per step if graph breaks divide a model, or if several models are compiled.
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
    """Values per step that the host reads from the device (count); missing if there are none.

    No CUDA graph can be captured across such a read.
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
