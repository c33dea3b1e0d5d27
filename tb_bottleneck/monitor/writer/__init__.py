"""The background thread that samples signals and writes event files."""
