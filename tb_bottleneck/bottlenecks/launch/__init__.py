"""The device waits for operators to be dispatched and kernels to be launched."""
