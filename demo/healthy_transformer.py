"""No illness: a transformer whose device is busy with arithmetic all of the time: nothing is to be had.

Both halves do the same work; the second reads a loss after each step, over a busy device, which costs nothing.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch.nn import functional

from demo.models import Encoder

WIDTH = {"cuda": 1024, "cpu": 256}
BATCH = {"cuda": 64, "cpu": 8}
LENGTH = {"cuda": 256, "cpu": 64}


def train(cured: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Train for `steps` steps and call `on_step` after each."""
    torch.manual_seed(0)
    kind = device.type
    model = Encoder(WIDTH[kind], layers=6 if kind == "cuda" else 2).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    inputs = torch.randn(BATCH[kind], LENGTH[kind], WIDTH[kind], device=device)
    labels = torch.randint(10, (BATCH[kind],), device=device)
    before: torch.Tensor | None = None
    for _ in range(steps):
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=kind == "cuda"):
            loss = functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if cured and before is not None:
            before.item()  # of the step before: by now the device has passed it
        before = loss.detach()
        on_step()
