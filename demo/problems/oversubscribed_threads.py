"""Problem: torch computes on many more threads than there are cores, as in a container that sees all cores.

Fix: as many threads as this process may use cores.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from tb_bottleneck.monitor.facts.cpu import usable_cores

BATCH = 16
TOKENS = 64
WIDTH = 256
LAYERS = 2
THREADS_PER_CORE = 16  # as in a container with four cores on a machine with sixty-four


class Classifier(nn.Module):
    """A small transformer encoder with a classification head."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, nhead=4, dim_feedforward=2 * WIDTH, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(self.encoder(tokens).mean(dim=1))
        return logits


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps on the CPU, even if there is a GPU, and calls `on_step` after each."""
    cores = max(1, int(usable_cores()))
    torch.set_num_threads(cores if fixed else THREADS_PER_CORE * cores)
    torch.manual_seed(0)
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    tokens, labels = torch.randn(BATCH, TOKENS, WIDTH), torch.randint(10, (BATCH,))
    for _ in range(steps):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(tokens), labels)
        loss.backward()
        optimizer.step()
        on_step()
