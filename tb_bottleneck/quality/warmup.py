"""Detects a recording of a start-up instead of steady behaviour, if it has too few steps to show that."""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.measures.trace.uneven_steps import first_runs_of, first_runs_recur
from tb_bottleneck.quality.trace_defects import Defect

# A recording with this share of first runs shows a start-up, not the training; unless the first runs recur.
WARMUP_SHARE = 0.25
# In a recording without steps, a single pause with this share of the window is a start-up.
LONE_PAUSE_SHARE = 0.50


def warmup_defect(recording: Recording) -> Defect | None:
    """Returns the defect `warmup`, or None if the recording shows steady behaviour."""
    window = recording.account.window
    start = int(first_runs_of(recording)[2].sum())
    if start / window > WARMUP_SHARE and not first_runs_recur(recording, WARMUP_SHARE):
        return Defect("warmup", True, {"share": start / window, "pause": start})
    if not recording.on_device:
        return None
    # A pause for the next batch, or for an interruption, recurs.
    recurring = recording.gaps.by_activity.total(Activity.LOAD_BATCH, Activity.INTERRUPT)
    longest = int(np.max(recording.gaps.end - recording.gaps.begin - recurring, initial=0))
    if recording.steps.basis == "whole" and longest / window > LONE_PAUSE_SHARE:
        return Defect("warmup", True, {"share": longest / window, "pause": longest})
    return None
