"""Event files with the series of the monitor."""
