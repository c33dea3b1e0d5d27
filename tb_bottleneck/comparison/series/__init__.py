"""Compares a series of runs."""
