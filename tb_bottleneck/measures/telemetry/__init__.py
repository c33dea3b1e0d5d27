"""Measures taken from the telemetry of one process."""

from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording

__all__ = ["TelemetryRecording"]
