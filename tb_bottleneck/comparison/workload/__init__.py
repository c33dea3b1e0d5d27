"""Describes what a run executes: batch size, operators, environment."""
