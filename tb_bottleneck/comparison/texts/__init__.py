"""Texts of comparisons."""
