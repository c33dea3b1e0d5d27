"""The illness: the running loss is kept as a Python float, so every step waits until the device has computed it.

The cure: the running loss stays on the device, and is read once at the end. With large steps the gain is small: the
device has work queued up for most of the wait. It is the case that shows how little a read of one number may cost.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch.nn import functional

from demo.models import perceptron

BATCH = 256


def train(cured: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Train for `steps` steps and call `on_step` after each."""
    model = perceptron(1024, 2048, 2048, 10).to(device)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    inputs, labels = torch.randn(BATCH, 1024, device=device), torch.randint(10, (BATCH,), device=device)
    summed = torch.zeros((), device=device)
    running = 0.0
    for _ in range(steps):
        loss = functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if cured:
            summed += loss.detach()
        else:
            running += loss.item()
        on_step()
    running += float(summed)
