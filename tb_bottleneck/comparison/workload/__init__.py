"""What a run executes: batch size, operators, environment."""
