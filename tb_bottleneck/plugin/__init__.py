"""The HTTP edge: what TensorBoard loads, its routes, and the processes that read traces for it."""
