"""Finds and reads recordings: logdirs, traces, event files, snapshots. Counts unusable parts; judges nothing."""
