"""The illness: a batch so small that the device is never filled, though its memory would hold far more.

The cure: a batch sixteen times as large. Times are to be compared per sample: a step now does sixteen times the work.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch.nn import functional

from demo.models import Encoder

BATCH = {False: 2, True: 32}  # the value of the switch, and samples in a step
LENGTH = 32


def train(cured: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Train for `steps` steps and call `on_step` after each."""
    torch.manual_seed(0)
    width = 512 if device.type == "cuda" else 128
    model = Encoder(width, layers=4).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    inputs = torch.randn(BATCH[cured], LENGTH, width, device=device)
    labels = torch.randint(10, (BATCH[cured],), device=device)
    for _ in range(steps):
        loss = functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        on_step()
