"""Jobs while they train: the heartbeats of their ranks, and what holds the ranks up."""
