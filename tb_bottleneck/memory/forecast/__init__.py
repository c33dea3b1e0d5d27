"""Predicts the peak under other conditions from the blocks of one recording."""
