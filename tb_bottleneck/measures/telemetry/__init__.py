"""Measures taken from the telemetry of one process."""
