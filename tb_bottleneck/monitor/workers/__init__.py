"""Samples the stacks of the main threads in the worker processes of a DataLoader."""
