"""Finds the places in the user's program to which the time of a cause belongs."""
