"""Scenarios, one per file: the changes of a fix to the recorded graph, its assumptions and its bounds."""
