"""Attributes every nanosecond of the judged window to one regime."""
