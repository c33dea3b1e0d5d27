"""Problem: each step keeps the model's outputs in a list, and so the memory grows with every step.

Fix: keep a number per step.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch.nn import functional

from demo.models import perceptron

BATCH = 256
WIDTHS = (128, 1024, 1024, 256)


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each."""
    torch.manual_seed(0)
    model = perceptron(*WIDTHS).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs, goal = torch.randn(BATCH, WIDTHS[0], device=device), torch.randn(BATCH, WIDTHS[-1], device=device)
    kept: list[torch.Tensor | float] = []
    for _ in range(steps):
        optimizer.zero_grad()
        outputs = model(inputs)
        functional.mse_loss(outputs, goal).backward()
        optimizer.step()
        kept.append(outputs.detach().mean().item() if fixed else outputs.detach())
        on_step()
