"""Measures a DataLoader with many settings."""
