"""The rules for telemetry: the same regimes with the thresholds of the rules for traces, but other signals."""
