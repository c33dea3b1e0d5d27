"""The work of operators that run on the CPU: what bounds it, and how much of its time something else disturbed.

What bounds an operator is told by its kind, unless its shapes rule arithmetic out.
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

# With fewer floating-point operations per byte than this the memory bounds a contraction on any CPU that trains: the
# x86 chips of the roofline paper (Williams, Waterman, Patterson: CACM 52/4, 2009) balance at 4 to 7 per byte, and
# arithmetic has grown faster than bandwidth since. Depthwise convolutions and products with one vector lie below it.
LOWEST_BALANCE = 1.0

_REGIME_OF_KIND = {"contraction": Regime.COMPUTE, "collective": Regime.COMMUNICATION}


def work_by_regime(trace: Trace, rows: Ints) -> dict[Regime, Bools]:
    """For each regime that these operators' own work belongs to, which of the rows do; every row is in one."""
    if not len(rows):
        return {}
    events = trace.events
    keys = np.stack([events.name[rows], events.signature[rows]], axis=1)
    distinct, which = np.unique(keys, axis=0, return_inverse=True)
    regimes = np.array([_regime(trace, name, signature) for name, signature in distinct.tolist()], dtype=object)
    return {regime: (regimes == regime)[which.reshape(-1)] for regime in sorted(set(regimes.tolist()))}


def quickest_share(trace: Trace, thread: int | None) -> float:
    """What a thread's operators would take, each as long as the quickest with its name and shapes, over what they took.

    The rest is what disturbed them: other threads on the same cores, cold caches, the machine's other work. Operators
    whose shapes were not recorded count as they were. 1 where nothing ran.
    """
    events, rows = trace.events, trace.rows(Kind.CPU_OP)
    rows = rows[events.thread[rows] == thread]
    own = nest(events.start[rows], events.end[rows]).self_times()
    told = events.signature[rows] > 0
    if not told.any():
        return 1.0
    keys = np.stack([events.name[rows[told]], events.signature[rows[told]]], axis=1)
    distinct, which = np.unique(keys, axis=0, return_inverse=True)
    quickest = np.full(len(distinct), np.iinfo(np.int64).max)
    np.minimum.at(quickest, which.reshape(-1), own[told])
    return float(quickest[which.reshape(-1)].sum() + own[~told].sum()) / max(float(own.sum()), 1.0)


def _regime(trace: Trace, name: int, signature: int) -> Regime:
    regime = _REGIME_OF_KIND.get(first_match(operator_patterns(), trace.names[name]) or "", Regime.MEMORY)
    return Regime.MEMORY if regime == Regime.COMPUTE and _streams(trace, name, signature) else regime


def _streams(trace: Trace, name: int, signature: int) -> bool:
    """Whether a contraction's shapes were recorded and leave too little arithmetic for each byte to matter."""
    operands = operands_of(trace.signatures[signature]) if signature else None
    if operands is None:
        return False
    operator = trace.names[name]
    work = flops(operator, operands.dims, operands.concrete)
    moved = bytes_moved(operator, operands.dims, operands.types, operands.concrete, None)
    return work is not None and moved is not None and work < LOWEST_BALANCE * moved
