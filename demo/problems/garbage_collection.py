"""Problem: a large cache of Python objects is alive, and every third step ends with a garbage collection of all of it.

Fix: `gc.freeze()` once the cache is filled, so that the collector traverses new objects only.
"""
# mypy: allow-untyped-calls

import gc
from collections.abc import Callable
from itertools import pairwise

import torch
from torch.nn import functional

from demo.models import perceptron

BATCH = 256
CACHED = 40_000
STEPS_PER_COLLECTION = 3


class Sample:
    """A cached sample with references to its neighbours, as objects of real programs have."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.neighbours: list[Sample] = []


def fill_cache() -> list[Sample]:
    """Returns many small objects that stay alive."""
    cache = [Sample(number) for number in range(CACHED)]
    for left, right in pairwise(cache):
        left.neighbours.append(right)
    return cache


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each."""
    torch.manual_seed(0)
    cache = fill_cache()
    model = perceptron(1024, 1024, 1024, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, labels = torch.randn(BATCH, 1024, device=device), torch.randint(10, (BATCH,), device=device)
    if fixed:
        gc.collect()
        gc.freeze()
    for step in range(1, steps + 1):
        loss = functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        litter = [Sample(number) for number in range(1000)]
        litter[0].neighbours.append(cache[step])
        if step % STEPS_PER_COLLECTION == 0:
            gc.collect()  # as some libraries do, "to save memory"
        on_step()
    gc.unfreeze()
