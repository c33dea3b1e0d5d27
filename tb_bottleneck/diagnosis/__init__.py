"""From a recording to its report: one module for traces, one for telemetry."""
