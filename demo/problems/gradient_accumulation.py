"""Problem: twelve samples are processed one at a time with accumulated gradients: the same work in tiny parts.

Fix: one micro-batch of twelve, which fits into memory. Accumulation saves memory; it never saves time.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch.nn import functional

from demo.models import Encoder

BATCH = 12
LENGTH = 64
MICRO_BATCH = {False: 1, True: 12}  # samples per backward pass, by the value of the switch


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each."""
    torch.manual_seed(0)
    width = 512 if device.type == "cuda" else 128
    model = Encoder(width, layers=1).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    inputs, labels = torch.randn(BATCH, LENGTH, width, device=device), torch.randint(10, (BATCH,), device=device)
    for _ in range(steps):
        optimizer.zero_grad()
        for samples, targets in zip(inputs.split(MICRO_BATCH[fixed]), labels.split(MICRO_BATCH[fixed]), strict=True):
            loss = functional.cross_entropy(model(samples), targets) * len(samples) / BATCH
            loss.backward()
        optimizer.step()
        on_step()
