"""Attributes each nanosecond of the analysed time window to exactly one regime (base/regime.py)."""
