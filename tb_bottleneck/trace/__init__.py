"""A trace as tables of columns: events, calls, device operations, steps."""
