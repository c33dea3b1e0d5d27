"""What autograd leaves in a trace."""
