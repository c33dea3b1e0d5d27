"""How sure an answer is, from what it rests on."""

from collections.abc import Sequence

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.measures.trace.host_dispatch import steps_between_pauses
from tb_bottleneck.measures.trace.interruptions import steps_between_interruptions
from tb_bottleneck.quality.trace_defects import Defect
from tb_bottleneck.regime import DEVICE_REGIMES, Regime
from tb_bottleneck.regimes.judge import Conclusion
from tb_bottleneck.regimes.rule import AnyVerdict

# Three steps let one be unlike the others and still be outvoted.
ENOUGH_STEPS = 3
# As much unexplained time as traceml's warning level for a residual puts every other share in doubt.
DOUBT, HEAVY_DOUBT = 0.10, 0.25


# A bound that shapes tell for less of the kernels' time than this rests on their names.
TOLD_BY_SHAPES = 0.5
# Measures of how often something comes that is off the cadence of steps; missing where it came once.
RHYTHMS = (steps_between_pauses.__name__, steps_between_interruptions.__name__)
# Defects after which some of the idle time may not have been idle, or some of the steps not whole.
DOUBTFUL = ("kernels_lost", "events_lost", "truncated", "overlapping_steps")


def confidence_of(recording: Recording, defects: Sequence[Defect]) -> str:
    """high, medium or low: by the steps seen, what they were cut by, what was lost, and what nothing explains."""
    unexplained = recording.account.share(Regime.UNEXPLAINED)
    # On a CPU run the profiler's own time lies in operators and between them, in parts that nothing tells.
    doubts = DOUBTFUL if recording.on_device else (*DOUBTFUL, "profiler_overhead")
    doubtful = any(defect.code in doubts for defect in defects)
    if unexplained > HEAVY_DOUBT or recording.steps.basis == "whole":
        return "low"
    if unexplained > DOUBT or doubtful or len(recording.steps) < ENOUGH_STEPS:
        return "medium"
    return "high"


def lowered(confidence: str, answer: Conclusion, verdicts: Sequence[AnyVerdict]) -> str:
    """The confidence in an answer, from what its own rule rests on.

    About the device's own work it is low where only kernel names tell what bounds them. About pauses it is medium at
    best where one came only once: how often they come in the run is then not known.
    """
    facts = next(verdict.facts for verdict in verdicts if verdict.regime == answer.regime)
    if answer.regime in DEVICE_REGIMES:
        known = facts.get("roofs_known")
        return "low" if isinstance(known, Measure) and known.value < TOLD_BY_SHAPES else confidence
    once = any(isinstance(facts.get(rhythm), Missing) for rhythm in RHYTHMS)
    return "medium" if once and confidence == "high" else confidence
