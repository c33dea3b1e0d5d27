"""Collectives that no compute hides."""
