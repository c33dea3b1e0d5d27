"""The rules for traces: one small file per regime. A rule judges from measures only."""
