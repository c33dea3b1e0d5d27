"""Facts about the world, as data with sources: kernel names, runtime calls, devices, advice."""
