"""The versions of the package and of the messages that it writes."""

__version__ = "1.0.0"

SCHEMA = 2
"""Version of reports and comparisons. Fields may be added to a version; a renamed field makes a new one."""

TELEMETRY_SCHEMA = 1
"""Version of the messages that the monitor writes."""
