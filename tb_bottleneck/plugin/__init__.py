"""The TensorBoard plugin: its HTTP routes, and the worker processes that read traces for it."""
