"""Operators, kernels and communications: their tables, what they come from, and what they wait for."""
