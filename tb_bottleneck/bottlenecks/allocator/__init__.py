"""The device waits for allocations of its memory."""
