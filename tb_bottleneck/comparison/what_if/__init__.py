"""Predicts a run under changed conditions."""
