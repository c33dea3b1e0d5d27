"""The changes that can be predicted, one per file."""
