"""What happened, in columns."""
