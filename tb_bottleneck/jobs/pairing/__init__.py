"""Finds the rows of different ranks that belong to the same collective or message."""
