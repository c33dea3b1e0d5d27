"""Jobs while they train: the heartbeats of their ranks, and the causes that delay the ranks."""
