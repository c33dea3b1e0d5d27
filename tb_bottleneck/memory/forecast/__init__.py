"""Predicts the peak of the memory under other conditions, from the blocks of one recording."""
