"""The telemetry of one process in columns over time: checked, bounded in memory, and cut into windows."""
