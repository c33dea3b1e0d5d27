"""Problem: several trainings share one machine, and each starts at least as many threads as the machine has cores.

Fix: each uses its share of the cores, `torch.set_num_threads(cores // processes)`.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing.synchronize import Barrier

import torch
from torch.nn import functional

from demo.models import perceptron
from demo.second_process import SPAWN, second_process
from tb_bottleneck.monitor.facts.cpu import usable_cores

PROCESSES = 3
THREADS_PER_CORE = 4  # as in a container with a quota of sixteen cores on a machine with sixty-four
BATCH = 64
ENDLESS = 10**9
SECONDS_TO_START = 120  # a process that takes longer has failed, and the others must not wait for ever


def steps_of(fixed: bool, steps: int, together: Barrier, on_step: Callable[[], None] | None = None) -> None:
    """Runs one of the trainings, once all of them are ready."""
    cores = max(1, int(usable_cores()))
    torch.set_num_threads(max(1, cores // PROCESSES) if fixed else THREADS_PER_CORE * cores)
    torch.manual_seed(0)
    model = perceptron(512, 1024, 512, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, labels = torch.randn(BATCH, 512), torch.randint(10, (BATCH,))
    together.wait(SECONDS_TO_START)
    for _ in range(steps):
        loss = functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if on_step is not None:
            on_step()


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each, with two more trainings in parallel."""
    together = SPAWN.Barrier(PROCESSES)
    with ExitStack() as neighbours:
        for _ in range(PROCESSES - 1):
            neighbours.enter_context(second_process(steps_of, fixed, ENDLESS, together, seconds_to_end=0))
        steps_of(fixed, steps, together, on_step)
