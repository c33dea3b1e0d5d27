"""The native scanner as a reader of traces: what it returns, and groups of blocks that are scanned at the same time."""
