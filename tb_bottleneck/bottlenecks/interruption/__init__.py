"""Checkpoints, logging, evaluation, garbage collection and first-time work."""
