"""The illness: `torch.cuda.empty_cache()` after every batch, so every step asks the driver for its memory anew.

The cure: to leave the cache alone; torch frees it by itself before it would run out.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch.nn import functional

from demo.models import classifier

BATCH = 64


def train(cured: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Train for `steps` steps and call `on_step` after each."""
    model = classifier((64, 128, 256, 512)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    inputs, labels = torch.randn(BATCH, 3, 224, 224, device=device), torch.randint(10, (BATCH,), device=device)
    for _ in range(steps):
        loss = functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del loss
        if not cured:
            torch.cuda.empty_cache()
        on_step()
