"""Problem: the running loss is kept as a Python float, so every step waits until the device has computed it.

Fix: keep the running loss on the device and read it once at the end. With large steps the gain is small, because the
device has queued work for most of the wait: this pair shows how little a read of one number may cost.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch.nn import functional

from demo.models import perceptron

BATCH = 512
FEATURES = 2048
HIDDEN = 8192


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each."""
    model = perceptron(FEATURES, HIDDEN, HIDDEN, 10).to(device)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    inputs, labels = torch.randn(BATCH, FEATURES, device=device), torch.randint(10, (BATCH,), device=device)
    summed = torch.zeros((), device=device)
    running = 0.0
    for _ in range(steps):
        loss = functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if fixed:
            summed += loss.detach()
        else:
            running += loss.item()
        on_step()
    running += float(summed)
