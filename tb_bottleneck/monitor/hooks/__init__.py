"""Hooks into torch that are installed while a monitor is on. Each module has the hooks of a few signals (named parts of
the monitor). A signal that fails is disabled, and the others continue."""
