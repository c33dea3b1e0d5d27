"""The host waits for the device, which then waits for launches."""
