"""The illness: thirty-two samples worked on one at a time, their gradients added up: as much work, in tiny portions.

The cure: one portion of thirty-two, which the memory has room for. Accumulation saves memory; it never saves time.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch.nn import functional

from demo.models import Encoder

BATCH = 32
LENGTH = 64
PORTION = {False: 1, True: 32}  # the value of the switch, and samples in each backward pass


def train(cured: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Train for `steps` steps and call `on_step` after each."""
    torch.manual_seed(0)
    width = 512 if device.type == "cuda" else 128
    model = Encoder(width, layers=1).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    inputs, labels = torch.randn(BATCH, LENGTH, width, device=device), torch.randint(10, (BATCH,), device=device)
    for _ in range(steps):
        optimizer.zero_grad()
        for some, wanted in zip(inputs.split(PORTION[cured]), labels.split(PORTION[cured]), strict=True):
            loss = functional.cross_entropy(model(some), wanted) * len(some) / BATCH
            loss.backward()
        optimizer.step()
        on_step()
