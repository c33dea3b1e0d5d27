"""Attributes the time of a run on the CPU to regimes. The CPU is the device, and only the main thread is attributed.

The own time of an operator is its duration without the operators that it calls. Operators with long own time do work.
Short own time is dispatch overhead. Pauses between operators count as dispatching if they are short, and as Python if
they are longer (attribution/host_activity.py).
"""

from collections.abc import Iterator, Mapping

import numpy as np

from tb_bottleneck.attribution.host_activity import REGIME_OF_ACTIVITY, Activity
from tb_bottleneck.attribution.owned_spans import Claim
from tb_bottleneck.base.arrays import distinct_rows
from tb_bottleneck.base.intervals import Spans, clip, intersect, merge, subtract, union
from tb_bottleneck.base.measure import Record
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.knowledge.catalogue import first_match, operator_patterns
from tb_bottleneck.roofline.bytes_moved import bytes_moved
from tb_bottleneck.roofline.matmul import flops
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.steps import Steps
from tb_bottleneck.trace.table import Bools, Ints, Rows
from tb_bottleneck.trace.trace import Trace

# Floating-point operations per byte. With fewer, memory bandwidth limits a contraction (matrix product or convolution)
# on any CPU in use for training: on the x86 chips of the roofline paper (Williams, Waterman, Patterson: CACM 52/4,
# 2009), arithmetic and bandwidth are in balance at 4 to 7 operations per byte, and arithmetic has grown faster than
# bandwidth since. Depthwise convolutions and products of a matrix with one vector are below this value.
LOWEST_BALANCE = 1.0

# Own time below this is mostly the overhead of the call: dispatching an operator costs 1 to 5 us.
DISPATCH_SIZED_NS = 5_000

# Setting gradients to None frees their memory, which takes milliseconds for large models and records no operator.
FREES_GRADIENTS = "Optimizer.zero_grad"

_REGIME_OF_KIND = {"contraction": Regime.COMPUTE, "collective": Regime.COMMUNICATION}


class ThreadOperators(Record, frozen=True, eq=False):
    """The operators of one thread, and the annotations of this thread that free gradients.

    `rows` has the event rows of these operators and annotations. `own` has the duration of each row in ns, without the
    operators that the row calls. Rows whose `own` is at least DISPATCH_SIZED_NS do more than dispatch. `work_start` and
    `work_end` have the disjoint time spans (ns) of the own time of these rows. `work_of` has for each span the index
    of its operator in `rows`.
    """

    rows: Rows
    own: Ints
    work_start: Ints
    work_end: Ints
    work_of: Ints


def operators_of(trace: Trace, thread: int | None) -> ThreadOperators:
    """Returns the operators of `thread` (a row of the trace's threads); no operators if `thread` is None."""
    events, rows = trace.events, trace.rows(Kind.CPU_OP, Kind.ANNOTATION)
    rows = rows[events.thread[rows] == (-1 if thread is None else thread)]
    frees = name_matches(trace.names, events.name[rows], lambda name: name.startswith(FREES_GRADIENTS))
    rows = np.asarray(rows[frees | (events.kind[rows] == Kind.CPU_OP)], np.intp)
    nesting = nest(events.start[rows], events.end[rows])
    own = nesting.self_times()
    return ThreadOperators(rows, own, *nesting.self_spans(own >= DISPATCH_SIZED_NS))


def work_by_regime(trace: Trace, rows: Ints) -> dict[Regime, Bools]:
    """Returns a dict from regimes to masks of `rows`: True for the operators whose own time belongs to that regime.

    `rows` are event rows of operators. Each row is in exactly one mask. The name of an operator decides the regime. A
    contraction (matrix product or convolution) belongs to `compute`, unless the recorded shapes show too little
    arithmetic per byte: then it belongs to `memory`.
    """
    if not len(rows):
        return {}
    events = trace.events
    first, kind = distinct_rows(events.name[rows], events.signature[rows])
    regimes = np.array(
        [_regime(trace, int(events.name[row]), int(events.signature[row])) for row in rows[first]], dtype=object
    )
    return {regime: (regimes == regime)[kind] for regime in sorted(set(regimes.tolist()))}


def undisturbed_share(trace: Trace, operators: ThreadOperators) -> float:
    """Returns the share (0 to 1) of the operators' own time that would remain without disturbance by other work.

    Disturbances are other threads on the same cores, cold caches, and other programs. Without disturbance, each call of
    an operator is assumed to take as long as the fastest call with the same name and shapes. Calls without recorded
    shapes count with the recorded time. Returns 1 if no call has recorded shapes.
    """
    events = trace.events
    is_operator = events.kind[operators.rows] == Kind.CPU_OP
    rows, own = operators.rows[is_operator], operators.own[is_operator]
    has_shapes = events.signature[rows] > 0
    if not has_shapes.any():
        return 1.0
    first, kind = distinct_rows(events.name[rows[has_shapes]], events.signature[rows[has_shapes]])
    fastest = np.full(len(first), np.iinfo(np.int64).max)
    np.minimum.at(fastest, kind, own[has_shapes])
    return float(fastest[kind].sum() + own[~has_shapes].sum()) / max(float(own.sum()), 1.0)


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


def cpu_claims(
    trace: Trace, steps: Steps, activities: Mapping[Activity, Spans], operators: ThreadOperators
) -> Iterator[Claim]:
    """Yields claims (regime, start times, end times), in ns. The claims are disjoint and cover the window of `steps`.

    `activities` and `operators` belong to the main thread. If `activities` is empty, no thread was recorded, and the
    whole window is unexplained.
    """
    window = Spans(np.array([steps.begin]), np.array([steps.end]))
    if not activities:
        yield Regime.UNEXPLAINED, window.starts, window.ends
        return
    rest = window
    for activity, spans in activities.items():
        inside = clip(spans, steps.begin, steps.end)
        rest = subtract(rest, inside)
        if activity is Activity.DISPATCH:
            yield from _operator_claims(trace, operators, inside)
        else:
            yield REGIME_OF_ACTIVITY[activity], inside.starts, inside.ends
    yield Regime.HOST, rest.starts, rest.ends


def _operator_claims(trace: Trace, operators: ThreadOperators, dispatching: Spans) -> Iterator[Claim]:
    """Yields claims (regime, start times, end times), in ns, which together cover `dispatching`: the spans in which the
    thread runs operators, with the short pauses between them.

    An operator whose own time (without the operators that it calls) is at least DISPATCH_SIZED_NS gives this time to
    its regime. The rest is dispatch overhead and goes to `launch`.
    """
    rows, is_long = operators.rows, operators.own >= DISPATCH_SIZED_NS
    work = []
    for regime, of_regime in work_by_regime(trace, rows[is_long]).items():
        is_work = np.zeros(len(rows), np.bool_)
        is_work[is_long] = of_regime
        owned = is_work[operators.work_of]
        spans = intersect(union(operators.work_start[owned], operators.work_end[owned]), dispatching)
        work.append(spans)
        yield regime, spans.starts, spans.ends
    overhead = subtract(dispatching, merge(*work))
    yield Regime.LAUNCH, overhead.starts, overhead.ends
