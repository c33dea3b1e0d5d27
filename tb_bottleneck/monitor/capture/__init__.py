"""Captures traces with torch.profiler."""
