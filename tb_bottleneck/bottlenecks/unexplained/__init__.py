"""Time that nothing recorded explains."""
