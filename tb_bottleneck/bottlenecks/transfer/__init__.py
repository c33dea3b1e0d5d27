"""Copies between host and device that no kernel hides."""
