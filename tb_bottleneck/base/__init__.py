"""What every layer may import: types, intervals, statistics and texts that are not about traces."""
