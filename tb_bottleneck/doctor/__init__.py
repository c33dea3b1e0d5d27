"""Checks on the user's machine whether each signal of the monitor is right, by measuring it a second time."""
