"""Kernels that memory bandwidth limits."""
