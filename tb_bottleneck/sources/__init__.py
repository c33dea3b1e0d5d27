"""Finds recordings under a logdir; reads nothing of what they hold."""
