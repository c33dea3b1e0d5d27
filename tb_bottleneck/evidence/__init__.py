"""What lies behind a report, made from the trace when somebody looks closer: timeline, tables, a slice to take away."""
