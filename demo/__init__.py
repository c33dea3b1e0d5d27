"""Ill trainings and their cures: one short script per illness, recorded runs of both halves, and a look at them."""
