"""The Python frames of each thread, with the user's innermost frame and the innermost module around each."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.trace.frame_owner import is_user_frame
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.nesting import Nesting, nest
from tb_bottleneck.trace.table import Bools, Ints, Rows, by_thread
from tb_bottleneck.trace.trace import Trace

MODULE = "nn.Module: "
# They belong to the function that they are written in; since Python 3.12 most of them have no frame of their own.
_COMPREHENSIONS = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")
# Annotations of torch itself; all others are the program's, or those of a framework that it uses.
_TORCH_BLOCKS = (
    "ProfilerStep",
    "Optimizer.",
    "enumerate(Data",
    "autograd::",
    "Torch-Compiled Region",
    "## Call CompiledFxGraph",
    "TorchDynamo",
    "DistributedDataParallel.",
    "FullyShardedDataParallel.",
    "nccl:",
    "gloo:",
)


@dataclass(frozen=True, eq=False)
class Enclosing:
    """Rows of one thread that enclose others. `rows` are rows of the events, or -1 for none."""

    nesting: Nesting
    rows: Rows
    found: tuple[Ints, ...]  # per kind of enclosing row that was asked for: the row of the events, or -1

    def at(self, times: Ints) -> tuple[Ints, ...]:
        """Return the innermost row at each time, and the innermost one of each kind around it; -1 if there is none."""
        if not len(self.rows):
            return (np.full(len(times), -1, np.int64),) * (1 + len(self.found))
        inside, row = self.nesting.innermost(times)
        return tuple(np.where(inside, column[row], -1) for column in (self.rows, *self.found))


@memoized
def frames_by_thread(recording: Recording) -> dict[int, Enclosing]:
    """Return the Python frames by thread (a row of the trace's threads). `found` has the user's frames, and modules."""
    trace = recording.trace
    return _by_thread(trace, trace.rows(Kind.PYTHON), is_user_function, lambda name: name.startswith(MODULE))


@memoized
def blocks_by_thread(recording: Recording) -> dict[int, Enclosing]:
    """Return the record_function blocks by thread (a row of the trace's threads), without those of torch."""
    trace, rows = recording.trace, recording.trace.rows(Kind.ANNOTATION)
    return _by_thread(trace, rows[~name_matches(trace.names, trace.events.name[rows], _is_torch_block)])


def is_user_function(frame: str) -> bool:
    """Return True if a frame is a function of the user's program, and no comprehension in one."""
    return is_user_frame(frame) and not frame.endswith(_COMPREHENSIONS)


def _is_torch_block(name: str) -> bool:
    return name.startswith(_TORCH_BLOCKS) or name.endswith("(dynamo_timed)")


def _by_thread(trace: Trace, rows: Rows, *tests: Callable[[str], bool]) -> dict[int, Enclosing]:
    events, found = trace.events, {}
    for thread, own in by_thread(rows, events.thread).items():
        nesting = nest(events.start[own], events.end[own])
        masks = [name_matches(trace.names, events.name[own], test) for test in tests]
        columns = [_nearest(nesting.parent, mask) for mask in masks]
        found[thread] = Enclosing(
            nesting, own, tuple(np.where(column >= 0, own[np.maximum(column, 0)], -1) for column in columns)
        )
    return found


def _nearest(parent: Ints, chosen: Bools) -> Ints:
    """Return the nearest chosen row for each row: itself or one that encloses it; -1 if there is none."""
    nearest = np.where(chosen, np.arange(len(parent)), parent)
    while not np.array_equal(nearest[nearest], nearest):
        nearest = nearest[nearest]
    return np.asarray(np.where(chosen[nearest], nearest, -1) if len(nearest) else nearest, np.int64)
