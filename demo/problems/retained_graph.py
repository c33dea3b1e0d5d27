"""Problem: the validation loss of each step is summed up with its graph, which keeps the activations of every step.

Fix: validate under no_grad, and sum up numbers.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from demo.models import perceptron

BATCH = 64
WIDTHS = (128, 512, 512, 64)


def validation_loss(model: nn.Module, inputs: torch.Tensor, goal: torch.Tensor, fixed: bool) -> torch.Tensor | float:
    """Returns the loss of a batch; with its graph, unless `fixed`."""
    if not fixed:
        return functional.mse_loss(model(inputs), goal)
    with torch.no_grad():
        return functional.mse_loss(model(inputs), goal).item()


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each."""
    torch.manual_seed(0)
    model = perceptron(*WIDTHS).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs, goal = torch.randn(BATCH, WIDTHS[0], device=device), torch.randn(BATCH, WIDTHS[-1], device=device)
    total: torch.Tensor | float = 0.0
    for _ in range(steps):
        optimizer.zero_grad()
        functional.mse_loss(model(inputs), goal).backward()
        optimizer.step()
        total = total + validation_loss(model, inputs, goal, fixed)
        on_step()
