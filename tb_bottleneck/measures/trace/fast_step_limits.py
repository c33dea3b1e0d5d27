"""Measures of the largest share of the window that fast steps allow a fix to recover, by regime."""

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.measures.fast_steps import fast_step
from tb_bottleneck.regime import Regime


def interruption_limit(recording: Recording) -> Measure | Missing:
    """Share of the window that steps without an interruption allow to recover."""
    return _limit(recording, Regime.INTERRUPTION)


def input_limit(recording: Recording) -> Measure | Missing:
    """Share of the window that steps without a wait for data allow to recover."""
    return _limit(recording, Regime.INPUT)


def host_limit(recording: Recording) -> Measure | Missing:
    """Share of the window that steps without a pause of Python allow to recover."""
    return _limit(recording, Regime.HOST)


def _limit(recording: Recording, regime: Regime) -> Measure | Missing:
    edges = recording.steps.edges
    costs = recording.owned_spans.of(regime).covered(edges[:-1], edges[1:]).astype(np.float64)
    times = np.diff(edges).astype(np.float64)
    fast = fast_step(times, costs)
    if not fast:
        return Missing("this time is in all steps, or too few steps are without it")
    return Measure(max(1 - fast / float(times.mean()), 0.0), "share", "window", len(times))
