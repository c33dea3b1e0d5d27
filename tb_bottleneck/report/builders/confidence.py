"""The confidence in a conclusion, from the evidence for it."""

from collections.abc import Sequence

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.base.regime import DEVICE_REGIMES, Regime
from tb_bottleneck.measures.trace.host_dispatch import steps_between_pauses
from tb_bottleneck.measures.trace.interruptions import steps_between_interruptions
from tb_bottleneck.measures.trace.kernel_efficiency import roofs_known
from tb_bottleneck.quality.trace_defects import Defect
from tb_bottleneck.regimes.judge import Conclusion
from tb_bottleneck.regimes.rule import AnyVerdict

# With three steps, one outlier is outvoted by the others.
MIN_TRACE_STEPS = 3
# More unexplained time than this puts every other share in doubt: traceml's warning level for a residual.
UNEXPLAINED_SHARE, LARGE_UNEXPLAINED_SHARE = 0.10, 0.25
# If shapes show the limit for less of the kernels' time than this, the limit is based on the names of kernels.
KNOWN_FROM_SHAPES = 0.5
# Measures of the interval between events that do not occur in every step; missing if the event occurred once.
INTERVALS = (steps_between_pauses.__name__, steps_between_interruptions.__name__)
# Defects with which some of the idle time may not have been idle, or some of the steps may be incomplete.
DOUBTFUL_DEFECTS = ("kernels_lost", "events_lost", "overlapping_steps")


def trace_confidence(
    recording: Recording, defects: Sequence[Defect], conclusion: Conclusion, verdicts: Sequence[AnyVerdict]
) -> str:
    """Returns high, medium or low, from the number and kind of steps, lost events, unexplained time, and the evidence
    of the conclusion's own rule.

    For the device's own work it is low if only kernel names show the limit of the kernels, and at most medium on a CPU
    run, where names of operators show it. For pauses it is low if one was recorded only once: how often they
    occur in the run is then not known. It is at most medium if the conclusion is that something is not known.
    """
    confidence = _recording_confidence(recording, defects)
    if conclusion.regime == Regime.UNEXPLAINED and confidence == "high":
        confidence = "medium"
    facts = next(verdict.facts for verdict in verdicts if verdict.regime == conclusion.regime)
    if conclusion.regime in DEVICE_REGIMES and conclusion.severity == "none" and not recording.on_device:
        return "medium" if confidence == "high" else confidence
    if conclusion.regime in DEVICE_REGIMES:
        known = facts.get(roofs_known.__name__)
        return "low" if isinstance(known, Measure) and known.value < KNOWN_FROM_SHAPES else confidence
    once = any(isinstance(facts.get(interval), Missing) for interval in INTERVALS)
    return "low" if once else confidence


def _recording_confidence(recording: Recording, defects: Sequence[Defect]) -> str:
    """Returns the confidence without the evidence of a single rule."""
    unexplained = recording.account.share(Regime.UNEXPLAINED)
    # On a CPU run the profiler's own time is part of the operators and of the time between them, to unknown shares.
    doubtful_codes = DOUBTFUL_DEFECTS if recording.on_device else (*DOUBTFUL_DEFECTS, "profiler_overhead")
    doubtful = any(defect.code in doubtful_codes for defect in defects)
    # A single step, or steps unlike the others, do not show what the run does. A truncated file lacks whole threads or
    # kinds of events: the profiler does not write events in the order of time.
    partial = any(defect.code in ("atypical_steps", "truncated") for defect in defects)
    is_sample = recording.steps.basis != "whole" and len(recording.steps) > 1 and not partial
    if unexplained > LARGE_UNEXPLAINED_SHARE or not is_sample:
        return "low"
    if unexplained > UNEXPLAINED_SHARE or doubtful or len(recording.steps) < MIN_TRACE_STEPS:
        return "medium"
    return "high"
