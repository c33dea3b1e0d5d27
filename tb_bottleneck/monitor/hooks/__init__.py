"""Hooks into torch that are installed while a monitor is on: one module per signal, each disabled alone if it fails."""
