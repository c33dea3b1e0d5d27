"""Measures taken from a trace."""

from tb_bottleneck.attribution.trace_recording import Recording

__all__ = ["Recording"]
