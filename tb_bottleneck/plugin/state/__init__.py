"""The server's state: recordings under the logdir, their reports, and the telemetry of runs."""
