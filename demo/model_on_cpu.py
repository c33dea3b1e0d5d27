"""The illness: nobody said `.to(device)`: the GPU is there, and everything runs on the CPU.

The cure: the model and its batches go to the device.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch.nn import functional

from demo.models import classifier

BATCH = 16


def train(cured: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Train for `steps` steps and call `on_step` after each."""
    place = device if cured else torch.device("cpu")
    model = classifier((32, 64, 128)).to(place)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    inputs, labels = torch.randn(BATCH, 3, 96, 96, device=place), torch.randint(10, (BATCH,), device=place)
    for _ in range(steps):
        loss = functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        on_step()
