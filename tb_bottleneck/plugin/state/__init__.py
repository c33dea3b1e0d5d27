"""What the server knows: recordings, telemetry, run list."""
