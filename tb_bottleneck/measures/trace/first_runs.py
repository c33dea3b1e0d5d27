"""Time in which code runs for the first time: it is compiled, loaded or tuned."""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.intervals import clip
from tb_bottleneck.trace.table import Ints

# A start-up may take the first steps of a recording; first runs in most of at least this many steps are no start-up.
MIN_STEPS_TO_RECUR = 3


def first_runs_of(recording: Recording) -> tuple[Ints, Ints, Ints]:
    """Returns the start, the end and the first-run time (ns) of each interval with first runs and no device work.

    On a CPU run the main thread is the device.
    """
    if recording.on_device:
        gaps = recording.gaps
        starting = gaps.by_activity.of(Activity.INITIALIZE)
        rows = starting > 0
        return gaps.begin[rows], gaps.end[rows], starting[rows]
    thread = recording.host.main_thread
    if thread is None:
        return (np.empty(0, np.int64),) * 3
    spans = clip(recording.host.activities(thread)[Activity.INITIALIZE], recording.steps.begin, recording.steps.end)
    return spans.starts, spans.ends, spans.ends - spans.starts


def first_runs_recur(recording: Recording, share: float) -> bool:
    """Returns True if first runs take this share of the window even without the half of the steps where they take most.

    This happens if torch.compile meets a new shape in each step. A start-up is over after the first steps.
    """
    edges = recording.steps.edges
    if len(recording.steps) < MIN_STEPS_TO_RECUR:
        return False
    begin, _, starting = first_runs_of(recording)
    step = np.searchsorted(edges, begin, side="right") - 1
    by_step = np.bincount(step, weights=starting, minlength=len(recording.steps))
    calmest = np.argsort(by_step, kind="stable")[: len(by_step) // 2]
    return bool(by_step[calmest].sum() > share * np.diff(edges)[calmest].sum())
