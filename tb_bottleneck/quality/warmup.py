"""Tells start-up from steady behaviour, where the recording holds too little to tell by its steps."""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.measures.trace.first_runs import first_runs_of, first_runs_recur
from tb_bottleneck.quality.trace_defects import Defect

# A recording that spends this much on things that happen once is about starting, not about training; unless they
# happen again and again.
WARMUP_SHARE = 0.25
# In a recording without steps, one pause that makes up this much of it and never comes again is a start-up.
LONE_PAUSE_SHARE = 0.50


def warmup_defect(recording: Recording) -> Defect | None:
    """The defect `warmup`, None where the recording shows steady behaviour."""
    window = recording.account.window
    start = int(first_runs_of(recording)[2].sum())
    if start / window > WARMUP_SHARE and not first_runs_recur(recording, WARMUP_SHARE):
        return Defect("warmup", True, {"share": start / window, "pause": start})
    if not recording.on_device:
        return None
    # A pause in which the next batch is awaited, or something off the cadence runs, comes again with the next one.
    told = recording.gaps.by_activity[:, [Activity.LOAD_BATCH, Activity.INTERRUPT]].sum(axis=1)
    longest = int(np.max(recording.gaps.end - recording.gaps.begin - told, initial=0))
    if recording.steps.basis == "whole" and longest / window > LONE_PAUSE_SHARE:
        return Defect("warmup", True, {"share": longest / window, "pause": longest})
    return None
