"""The memory in snapshots of the CUDA allocator."""
