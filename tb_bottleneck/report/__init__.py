"""Verdicts, measures and words become a Report, and a Report becomes text."""
