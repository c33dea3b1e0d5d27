"""Facts with sources, as data: kernel names, runtime calls, devices, texts."""
