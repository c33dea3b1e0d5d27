"""Formats the parts of a report beside the verdicts as text."""
