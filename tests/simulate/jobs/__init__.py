"""Simulates distributed jobs with planted causes, independent of the package's own replay."""
