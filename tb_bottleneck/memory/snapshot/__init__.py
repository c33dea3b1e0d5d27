"""The memory in allocator snapshots."""
