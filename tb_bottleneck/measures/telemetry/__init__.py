"""Measures whose witness is the telemetry: each takes the testimony of one process, as others take a recording."""
