"""Functions that torch.compile was called for, but that run without compiled code.

torch does so for a whole function if a graph break lies in a loop or a `with` block, which it cannot resume
(pytorch torch/_dynamo/symbolic_convert.py). Only Python frames show it: torch's wrapper is called, and no compiled
region begins inside. Releases of torch that have this frame mark every compiled region, so a missing one tells.
"""

import re
from collections import defaultdict

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.measure import Measure, Missing, text_measure
from tb_bottleneck.measures.compile_log import compile_log
from tb_bottleneck.measures.trace.window import host_rows
from tb_bottleneck.record import Record
from tb_bottleneck.trace.frames.frame_owner import frame_parts, is_user_frame
from tb_bottleneck.trace.kernel_names import cut
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Rows

# The wrapper of a compiled function (pytorch torch/_dynamo/eval_frame.py).
_WRAPPER = re.compile(r"(?:^|/)torch/_dynamo/eval_frame\.py\(\d+\): compile_wrapper$")
_COMPILED = re.compile(r"^Torch-Compiled Region|\(dynamo_timed\)$|^CompiledFunction$|^## Call CompiledFxGraph")
_MAX_LISTED, _MAX_FRAMES = 3, 100
UNKNOWN = "the reason was not recorded; the most common one is a graph break in a loop"


class Uncompiled(Record, frozen=True):
    """A function with the reason why torch runs it without compiling. Texts are untrusted."""

    function: str
    file: str
    line: int
    reason: str


@memoized
def uncompiled(recording: Recording) -> tuple[Uncompiled, ...]:
    """Returns the functions of which no call in the window ran compiled code."""
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
    """The functions that run without compiled code although torch.compile was called for them (text)."""
    found = uncompiled(recording)
    if not found:
        return Missing("no function was recorded that torch.compile left uncompiled")
    texts = [f"{entry.function} ({entry.file}:{entry.line}): {entry.reason}" for entry in found[:_MAX_LISTED]]
    return text_measure("; ".join(texts), len(found))


def _called(recording: Recording, frames: Rows, wrapper: int) -> str:
    """Returns the first of these frames of the program that is inside of a wrapper; empty if there is none."""
    trace, events = recording.trace, recording.trace.events
    inside = frames[(events.thread[frames] == events.thread[wrapper]) & (events.end[frames] <= events.end[wrapper])]
    names = (trace.names[events.name[row]] for row in inside.tolist())
    return next((name for name in names if is_user_frame(name)), "")
