"""The bottlenecks of training. Each folder has what belongs to one: facts, rules, fixes and texts."""
