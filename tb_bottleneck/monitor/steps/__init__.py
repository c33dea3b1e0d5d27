"""Step detection and per-step timing."""
