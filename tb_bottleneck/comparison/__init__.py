"""Runs held against one another: what differs, what should have differed, and what would if something were changed."""
