"""Problem: Adam updates hundreds of small weights one by one, in operators of a few microseconds each.

Fix: `fused=True`, which updates all of them in a few calls.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from demo.models import perceptron

CLASSES = 200
WIDTH = 256
BATCH = 1536


class Prototypes(nn.Module):
    """A classifier with a separate weight per class, so that classes can be added."""

    def __init__(self) -> None:
        super().__init__()
        self.body = perceptron(WIDTH, WIDTH, WIDTH)
        self.classes = nn.ParameterList(torch.randn(WIDTH) / WIDTH**0.5 for _ in range(CLASSES))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Maps samples (batch, width) to logits (batch, classes)."""
        logits: torch.Tensor = self.body(inputs) @ torch.stack(list(self.classes)).T
        return logits


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Prototypes().to(device)
    parameters = list(model.parameters())
    optimizer = torch.optim.Adam(parameters, fused=True) if fixed else torch.optim.Adam(parameters, foreach=False)
    inputs, labels = torch.randn(BATCH, WIDTH, device=device), torch.randint(CLASSES, (BATCH,), device=device)
    for _ in range(steps):
        loss = functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        on_step()
