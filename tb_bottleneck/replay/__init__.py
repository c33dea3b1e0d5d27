"""Simulates the gains of fixes on the recorded dependency graph: graph, scenarios and plan."""
