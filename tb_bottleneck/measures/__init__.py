"""Measures: single numbers with unit, count and evidence source, taken from a trace or from telemetry."""
