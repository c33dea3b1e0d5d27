"""Builds reports from traces and from telemetry."""
