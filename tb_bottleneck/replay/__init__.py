"""Gains that are simulated before they are promised: the dependency graph, the scenarios, the plan."""
