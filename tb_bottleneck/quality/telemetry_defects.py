"""Defects of telemetry: codes and figures, no texts."""

from collections.abc import Iterator, Mapping

from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.quality.trace_defects import Defect, debugging_defects

MIN_STEPS, MIN_READINGS = 2, 10
"""Telemetry with fewer steps and also fewer readings of the device's utilisation cannot be judged."""


def telemetry_defects(recording: TelemetryRecording, dropped: Mapping[str, int]) -> Iterator[Defect]:
    """Yields the defects of one process's telemetry. `dropped` maps each reason to the number of data that could not be
    used for this reason."""
    steps = len(recording.steps)
    readings = len(recording.windows.readings("gpu_utilisation", of_device=True)[0])
    if steps < MIN_STEPS and readings < MIN_READINGS:
        code = "ended_without_steps" if recording.telemetry.ended else "insufficient_telemetry"
        yield Defect(code, True, {"steps": steps, "readings": readings})
    elif steps < MIN_STEPS:
        yield Defect("no_step_clock", False)
    yield from debugging_defects(recording.facts)
    if recording.telemetry.lost_packets:
        yield Defect("packets_lost", False, {"packets": float(recording.telemetry.lost_packets)})
    if dropped:
        reason = max(dropped, key=lambda name: dropped[name]).replace("_", " ")
        yield Defect("readings_dropped", False, {"count": float(sum(dropped.values())), "reason": reason})
