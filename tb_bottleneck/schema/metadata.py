"""Facts about the contract that its writers and its readers share."""

SCHEMA = 1
"""The version of bottleneck.proto that reports are written in; fields may be added under it, none changes meaning."""
