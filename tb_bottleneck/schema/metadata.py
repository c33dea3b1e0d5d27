"""Versions of the messages in this folder."""

SCHEMA = 2
"""Version of reports and comparisons. Fields may be added to a version; a renamed field makes a new one."""

TELEMETRY_SCHEMA = 1
"""Version of the messages that the monitor writes."""

REVIEW_DIRECTORY = ".tb_bottleneck_review"
"""The directory in a logdir with the notes of reviewers. Scans for recordings skip it."""
