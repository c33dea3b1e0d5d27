"""Predicts step times on another device."""
