"""A device is present, but the work runs on the CPU."""
