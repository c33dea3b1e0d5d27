"""Numbers from the witnesses: each with its unit, its count and who testified."""
