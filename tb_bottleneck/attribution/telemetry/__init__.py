"""Attributes the time of telemetry windows to regimes."""
