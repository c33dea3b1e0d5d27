"""The dependency graph of a recording."""
