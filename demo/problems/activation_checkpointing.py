"""Problem: the activations of all blocks are kept for the backward pass, and are most of the memory.

Fix: checkpoint the blocks. Only their inputs are kept; the rest is computed again in the backward pass, which takes
time. The report of the first variant predicts the peak of the second.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

BATCH = 512
WIDTH = 128
LAYERS = 8


class Block(nn.Module):
    """A residual block of two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Hidden (batch, width) to the same shape."""
        result: torch.Tensor = hidden + self.narrow(functional.gelu(self.wide(hidden)))
        return result


class Network(nn.Module):
    """Blocks one after the other, checkpointed or not."""

    def __init__(self, checkpointed: bool) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.checkpointed = checkpointed

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Hidden (batch, width) to the same shape."""
        for block in self.blocks:
            hidden = checkpoint(block, hidden, use_reentrant=False) if self.checkpointed else block(hidden)
        return hidden


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each."""
    torch.manual_seed(0)
    model = Network(checkpointed=fixed).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs, goal = torch.randn(BATCH, WIDTH, device=device), torch.randn(BATCH, WIDTH, device=device)
    for _ in range(steps):
        optimizer.zero_grad()
        functional.mse_loss(model(inputs), goal).backward()
        optimizer.step()
        on_step()
