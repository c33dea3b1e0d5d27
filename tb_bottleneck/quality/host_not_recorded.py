"""Detects a recording without host activity: nothing in it explains why the device had no work."""

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.idle_gaps import LONGEST_DEVICE_PAUSE_NS
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.quality.trace_defects import Defect

# From here on idle time would name the run: traceml's warning level for overheads (diagnostics/step_time/policy.py).
UNRECORDED_IDLE_SHARE = 0.10


def host_not_recorded_defect(recording: Recording) -> Defect | None:
    """Returns the defect `host_not_recorded`, or None if the host was recorded or the device has little idle time."""
    if not recording.on_device or recording.host.recorded:
        return None
    gaps = recording.gaps
    unexplained = gaps.queued[(gaps.thread < 0) & (gaps.queued >= LONGEST_DEVICE_PAUSE_NS)]
    idle = int(gaps.by_activity.of(Activity.OTHER).sum() + unexplained.sum())
    share = idle / recording.account.window
    return Defect("host_not_recorded", True, {"share": share, "pause": idle}) if share > UNRECORDED_IDLE_SHARE else None
