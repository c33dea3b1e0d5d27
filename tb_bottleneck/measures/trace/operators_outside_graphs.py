"""Operators that a compiled program calls outside of its graphs."""

from collections import defaultdict

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.measures.trace.window import host_rows
from tb_bottleneck.record import Record
from tb_bottleneck.trace.kernel_names import cut
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.table import Rows, by_thread

TIMED = "(dynamo_timed)"
"""How the names of the parts of compiling end."""

_MAX_OUTSIDE = 5
# Rows of compiled code, and of torch.compile's own checks before it.
_COMPILED = (
    "Torch-Compiled Region",
    "TorchDynamo Cache Lookup",
    "dynamo",
    "Pregraph bytecode",
    "## Call CompiledFxGraph",
    "CompiledFunction",
    "autograd::engine::evaluate_function: CompiledFunction",
)


class OutsideOperator(Record, frozen=True):
    """An operator that is called outside of compiled regions: calls and time of the host, in all steps."""

    name: str
    calls: int
    ns: float


def operators_outside(recording: Recording, regions: Rows) -> tuple[OutsideOperator, ...]:
    """Returns the outermost operators that are not in compiled code, the longest time first."""
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
    ordered = [name for name in ordered if not trace.names[name].startswith(_COMPILED)][:_MAX_OUTSIDE]
    return tuple(OutsideOperator(cut(trace.names[name]), calls[name], spent[name]) for name in ordered)
