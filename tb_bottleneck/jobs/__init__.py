"""Judges all ranks of a distributed job together, from a small summary of each rank."""
