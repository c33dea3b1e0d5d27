"""Detects a recording without host activity: nothing in it explains why the device had no work."""

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.idle_gaps import LONGEST_DEVICE_PAUSE_NS
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.quality.trace_defects import Defect

# From here on idle time would name the run: traceml's warning level for overheads (diagnostics/step_time/policy.py).
UNRECORDED_IDLE_SHARE = 0.10
# Up to here the work of the device outweighs what is not known, and the fixes of that work do not depend on it. From
# here on the unknown time alone would be critical (regimes/judge.py).
FATAL_IDLE_SHARE = 0.20


def host_not_recorded_defect(recording: Recording) -> Defect | None:
    """Returns the defect `host_not_recorded`, or None if the host was recorded or the device has little idle time."""
    if not recording.on_device or recording.host.recorded:
        return None
    gaps = recording.gaps
    unexplained = gaps.queued[(gaps.thread < 0) & (gaps.queued >= LONGEST_DEVICE_PAUSE_NS)]
    idle = int(gaps.by_activity.of(Activity.OTHER).sum() + unexplained.sum())
    share = idle / recording.account.window
    if share <= UNRECORDED_IDLE_SHARE:
        return None
    return Defect("host_not_recorded", share > FATAL_IDLE_SHARE, {"share": share, "pause": idle})
