"""Attributes the time of telemetry windows (intervals in which a monitor sampled a training) to regimes."""
