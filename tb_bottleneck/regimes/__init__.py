"""The rules for traces: one module per regime. The input of a rule is measures only."""
