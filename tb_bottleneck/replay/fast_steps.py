"""The limit that a run's fast steps set to a simulated gain (measures/fast_steps.py).

The cost of the cause in a step is what the fix saves there at best. A fix that also makes other steps faster, as rarer
checkpoints do on a CPU, whose writer slows the steps between them, shortens all steps, and is not limited.
"""

from tb_bottleneck.measures.fast_steps import fast_step
from tb_bottleneck.replay.modified_graph import ModifiedGraph


def shortest_window(before: ModifiedGraph, after: ModifiedGraph) -> float:
    """Returns the shortest time in ns that the window can take after a fix, 0 if fast steps set no limit.

    `after` is the graph with the largest plausible effect of the fix.
    """
    steps = before.simulated_steps()
    return fast_step(steps, steps - after.simulated_steps()) * len(steps)
