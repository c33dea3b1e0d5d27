"""The efficiency part of a report, and what a run without a problem could still gain."""
