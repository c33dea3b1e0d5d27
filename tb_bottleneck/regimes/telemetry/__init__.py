"""The same regimes judged from telemetry: the thresholds are those of the rules for traces, the signals others."""
