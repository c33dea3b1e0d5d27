"""Kernels that arithmetic throughput limits."""
