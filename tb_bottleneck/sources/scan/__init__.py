"""The native scanner as a reader of traces: the form of its results, and scanning groups of blocks in parallel."""
