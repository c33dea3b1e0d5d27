"""Renders reports as text and JSON."""
