"""Builds the columns of the event table from the reader's batches."""
