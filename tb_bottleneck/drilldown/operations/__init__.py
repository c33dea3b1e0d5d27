"""Operators, kernels and communications: their tables, their callers, and what they wait for."""
