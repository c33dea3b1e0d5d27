"""Makes a report from a recording. One module is for traces, one for telemetry, and one for memory snapshots."""
