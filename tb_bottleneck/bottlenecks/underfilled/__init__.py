"""Kernels too small to fill the device."""
