"""Finds the rows of all ranks that are one and the same collective or message."""
