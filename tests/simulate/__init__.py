"""A simulated training on a simulated device, written out as Kineto JSON, with the truth known by construction."""
