"""Builds reports from verdicts, measures and texts, stores them, and renders them as text and JSON."""
