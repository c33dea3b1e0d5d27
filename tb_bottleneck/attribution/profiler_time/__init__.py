"""The profiler's own time in a recording, and the recording without it."""
