"""Builds the report of a job."""
