"""Analyses the use of memory: accounts, findings and predictions from memory events, snapshots and counters."""
