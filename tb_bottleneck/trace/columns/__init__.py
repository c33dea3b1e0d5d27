"""Builds the columns of the event table from the batches of events that the reader of a trace file yields."""
