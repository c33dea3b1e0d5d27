"""Python frames of a trace."""
