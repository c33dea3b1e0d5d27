"""Problem: in a chain of elementwise operators over large tensors, each one reads and writes all of the memory.

Fix: `torch.compile` fuses the chain into one kernel that reads once and writes once.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch import nn

ROWS = {"cuda": 16384, "cpu": 1024}
WIDTH = 4096


class Gate(nn.Module):
    """A gated, normalised activation with a residual, written with separate operators."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(WIDTH))
        self.shift = nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Elementwise, except for the mean over each row."""
        normal = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)
        scaled = normal * self.scale + self.shift
        return torch.sigmoid(scaled) * torch.tanh(scaled * 0.5) + x * 0.1


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each."""
    torch.manual_seed(0)
    model = nn.Sequential(*(Gate() for _ in range(4))).to(device)
    run = torch.compile(model) if fixed else model
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    inputs = torch.randn(ROWS[device.type], WIDTH, device=device)
    for _ in range(steps):
        loss = run(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        on_step()
