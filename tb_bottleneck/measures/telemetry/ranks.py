"""Which process of how many this is."""

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.measure import Measure, Missing


def world_size(testimony: TelemetryRecording) -> Measure | Missing:
    """Processes of the job (count)."""
    count = testimony.fact("world_size")
    if not count:
        return Missing("world_size is not among the facts of the run")
    return Measure(count, "count", source=EVIDENCE_SOURCE)
