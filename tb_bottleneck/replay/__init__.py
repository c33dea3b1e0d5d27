"""Simulates gains on the recorded dependency graph: graph, scenarios and plan."""
