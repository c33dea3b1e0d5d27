"""Measures taken from a trace."""
