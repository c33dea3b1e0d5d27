"""No problem: a transformer that keeps the device busy with arithmetic all the time.

Both variants do the same work. The second also reads a loss after each step, which costs nothing on a busy device.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch.nn import functional

from demo.models import Encoder

WIDTH = {"cuda": 1024, "cpu": 256}
BATCH = {"cuda": 64, "cpu": 8}
LENGTH = {"cuda": 256, "cpu": 64}


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each."""
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
        if fixed and before is not None:
            before.item()  # the previous step's loss, which the device has already computed
        before = loss.detach()
        on_step()
