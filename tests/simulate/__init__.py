"""Simulates a training on a simulated device and writes it as Kineto JSON, with ground truth known by construction."""
