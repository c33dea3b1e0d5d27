"""Finds and reads what was recorded: logdirs, traces. It counts what it dropped, and judges nothing."""
