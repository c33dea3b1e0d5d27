"""Work of operators that run on the CPU: the regime that owns it, and how much of it was disturbed.

The type of an operator decides its regime, unless its shapes show too little arithmetic for `compute`.
"""

import numpy as np

from tb_bottleneck.knowledge.catalogue import first_match, operator_patterns
from tb_bottleneck.regime import Regime
from tb_bottleneck.roofline.bytes_moved import bytes_moved
from tb_bottleneck.roofline.flops import flops
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.table import Bools, Ints
from tb_bottleneck.trace.trace import Trace

# With fewer floating-point operations per byte than this, memory bandwidth limits a contraction on any CPU in use for
# training: the x86 chips of the roofline paper (Williams, Waterman, Patterson: CACM 52/4, 2009) balance at 4 to 7 per
# byte, and arithmetic has grown faster than bandwidth since. Depthwise convolutions and products with one vector are
# below this value.
LOWEST_BALANCE = 1.0

_REGIME_OF_KIND = {"contraction": Regime.COMPUTE, "collective": Regime.COMMUNICATION}


def work_by_regime(trace: Trace, rows: Ints) -> dict[Regime, Bools]:
    """Returns masks of the rows by the regime that owns the operators' own work; each row is in one mask."""
    if not len(rows):
        return {}
    events = trace.events
    keys = np.stack([events.name[rows], events.signature[rows]], axis=1)
    distinct, which = np.unique(keys, axis=0, return_inverse=True)
    regimes = np.array([_regime(trace, name, signature) for name, signature in distinct.tolist()], dtype=object)
    return {regime: (regimes == regime)[which.reshape(-1)] for regime in sorted(set(regimes.tolist()))}


def undisturbed_share(trace: Trace, thread: int | None) -> float:
    """Returns the share of a thread's operator time that remains if all operators are as fast as the fastest of a kind.

    Operators of one kind have the same name and shapes. The rest is disturbance: other threads on the same cores, cold
    caches, other work of the machine. Operators without recorded shapes count with their recorded time. Returns 1 if
    nothing ran.
    """
    events, rows = trace.events, trace.rows(Kind.CPU_OP)
    rows = rows[events.thread[rows] == thread]
    own = nest(events.start[rows], events.end[rows]).self_times()
    has_shapes = events.signature[rows] > 0
    if not has_shapes.any():
        return 1.0
    keys = np.stack([events.name[rows[has_shapes]], events.signature[rows[has_shapes]]], axis=1)
    distinct, which = np.unique(keys, axis=0, return_inverse=True)
    fastest = np.full(len(distinct), np.iinfo(np.int64).max)
    np.minimum.at(fastest, which.reshape(-1), own[has_shapes])
    return float(fastest[which.reshape(-1)].sum() + own[~has_shapes].sum()) / max(float(own.sum()), 1.0)


def _regime(trace: Trace, name: int, signature: int) -> Regime:
    regime = _REGIME_OF_KIND.get(first_match(operator_patterns(), trace.names[name]) or "", Regime.MEMORY)
    return Regime.MEMORY if regime == Regime.COMPUTE and _is_memory_bound(trace, name, signature) else regime


def _is_memory_bound(trace: Trace, name: int, signature: int) -> bool:
    """Returns True if a contraction's recorded shapes have less arithmetic per byte than LOWEST_BALANCE."""
    operands = operands_of(trace.signatures[signature]) if signature else None
    if operands is None:
        return False
    operator = trace.names[name]
    work = flops(operator, operands.dims, operands.concrete)
    moved = bytes_moved(operator, operands.dims, operands.types, operands.concrete, None)
    return work is not None and moved is not None and work < LOWEST_BALANCE * moved
