"""Measures a DataLoader under many settings."""
