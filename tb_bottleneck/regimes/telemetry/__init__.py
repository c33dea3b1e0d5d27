"""The rules for telemetry: the regimes and thresholds of the rules for traces, with other signals."""
