"""Measures taken from a trace."""

from tb_bottleneck.attribution.recording import Recording

__all__ = ["Recording"]
