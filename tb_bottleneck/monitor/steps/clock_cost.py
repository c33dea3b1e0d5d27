"""What the clock itself costs, for the monitor to count among its own time."""

import time

from tb_bottleneck.monitor.steps.step_clock import StepClock


def cost_of_a_step(steps: int = 200) -> float:
    """Nanoseconds that the clock itself takes for an ordinary step, measured here and now with everything in its
    caches."""
    clock = StepClock(lambda _row: None)
    began = time.perf_counter_ns()
    for _ in range(steps):
        clock.fetch_begins(1)
        clock.fetch_ends(1, 8.0, True)
        clock.backward_ends(clock.backward_begins())
        clock.optimizer_begins(1)
        clock.optimizer_ends(1)
    return (time.perf_counter_ns() - began) / steps
