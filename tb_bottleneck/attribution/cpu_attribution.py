"""Attribution of the window of a run on the CPU: the CPU is the device, and its timeline is that of the main thread.

An operator's own time, without the operators it calls, is work if it is long; if it is short, it is dispatch overhead.
Pauses between operators belong to dispatching if they are short, and to Python if they are longer
(attribution/host_activity.py).
"""

from collections.abc import Iterator, Mapping

import numpy as np

from tb_bottleneck.attribution.cpu_operators import DISPATCH_SIZED_NS, ThreadOperators, work_by_regime
from tb_bottleneck.attribution.host_activity import REGIME_OF_ACTIVITY, Activity
from tb_bottleneck.attribution.owned_spans import Claim
from tb_bottleneck.intervals import Spans, clip, intersect, merge, subtract, union
from tb_bottleneck.regime import Regime
from tb_bottleneck.trace.steps import Steps
from tb_bottleneck.trace.trace import Trace


def cpu_claims(
    trace: Trace, steps: Steps, activities: Mapping[Activity, Spans], operators: ThreadOperators
) -> Iterator[Claim]:
    """Yields the claims on the window; their times sum to the window.

    `activities` and `operators` are those of the main thread; no activities mean that no thread was recorded.
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
    """Splits `dispatching` into the own time of long operators, by regime, and the dispatch overhead that remains."""
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
