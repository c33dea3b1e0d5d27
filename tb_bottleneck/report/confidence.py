"""How sure an answer is, from what it rests on."""

from collections.abc import Sequence

from tb_bottleneck.measures.recording import Recording
from tb_bottleneck.trace.health import Defect

# Three steps let one be unlike the others and still be outvoted.
ENOUGH_STEPS = 3
# As much unexplained time as traceml's warning level for a residual puts every other share in doubt.
DOUBT, HEAVY_DOUBT = 0.10, 0.25


# Defects after which some of the idle time may not have been idle, or some of the steps not whole.
DOUBTFUL = ("kernels_lost", "events_lost", "truncated")


def confidence_of(recording: Recording, defects: Sequence[Defect]) -> str:
    """high, medium or low: by the steps seen, what they were cut by, what was lost, and what nothing explains."""
    unexplained = recording.account.share("unexplained")
    doubtful = any(defect.code in DOUBTFUL for defect in defects)
    if unexplained > HEAVY_DOUBT or recording.steps.basis == "whole":
        return "low"
    if unexplained > DOUBT or doubtful or len(recording.steps) < ENOUGH_STEPS:
        return "medium"
    return "high"
