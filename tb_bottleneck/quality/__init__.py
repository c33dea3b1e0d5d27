"""Data quality: defects of a recording, and whether they allow a verdict."""
