"""Problem: `torch.cuda.empty_cache()` after every batch makes every step allocate its memory from the driver again.

Fix: do not empty the cache; torch frees it before it would run out of memory.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch.nn import functional

from demo.models import classifier

BATCH = 64


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each."""
    model = classifier((64, 128, 256, 512)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    inputs, labels = torch.randn(BATCH, 3, 224, 224, device=device), torch.randint(10, (BATCH,), device=device)
    for _ in range(steps):
        loss = functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del loss
        if not fixed:
            torch.cuda.empty_cache()
        on_step()
