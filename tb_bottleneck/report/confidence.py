"""How sure an answer is, from what it rests on."""

from tb_bottleneck.measures.recording import Recording

# Three steps let one be unlike the others and still be outvoted.
ENOUGH_STEPS = 3
# As much unexplained time as traceml's warning level for a residual puts every other share in doubt.
DOUBT, HEAVY_DOUBT = 0.10, 0.25


def confidence_of(recording: Recording) -> str:
    """high, medium or low: by the steps seen, what they were cut by, and the share that nothing explains."""
    unexplained = recording.account.share("unexplained")
    if unexplained > HEAVY_DOUBT or recording.steps.basis == "whole":
        return "low"
    if unexplained > DOUBT or len(recording.steps) < ENOUGH_STEPS:
        return "medium"
    return "high"
