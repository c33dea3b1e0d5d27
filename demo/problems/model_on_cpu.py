"""Problem: `.to(device)` is missing, so everything runs on the CPU although there is a GPU.

Fix: move the model and its batches to the device.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch.nn import functional

from demo.models import classifier

BATCH = 16


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each."""
    place = device if fixed else torch.device("cpu")
    model = classifier((32, 64, 128)).to(place)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    inputs, labels = torch.randn(BATCH, 3, 96, 96, device=place), torch.randint(10, (BATCH,), device=place)
    for _ in range(steps):
        loss = functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        on_step()
