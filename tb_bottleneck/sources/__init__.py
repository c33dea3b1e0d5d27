"""Finds and reads recordings: logdirs, traces, event files. Counts what it dropped; judges nothing."""
