"""Real trainings with one planted problem each, and what the diagnosis of their recordings should say."""
