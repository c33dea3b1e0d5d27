"""The device waits for Python, or for operators on the CPU."""
