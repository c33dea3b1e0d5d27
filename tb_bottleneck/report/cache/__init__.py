"""Stores reports: in the cache directory, and next to their traces."""
