"""Builds the columns of the event table from what the reader yields."""
