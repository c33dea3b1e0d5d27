"""Trainings that are recorded and timed on a GPU, for `tests/measurements/gpu.py`."""
