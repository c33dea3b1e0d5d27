"""The runs of a comparison."""
