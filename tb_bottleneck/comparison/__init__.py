"""Compares runs: measured differences, expected differences, and predictions for changed runs."""
