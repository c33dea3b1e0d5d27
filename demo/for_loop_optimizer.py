"""The illness: Adam walks over hundreds of small weights one by one, in operators of a few microseconds each.

The cure: `fused=True`, which updates all of them in a few calls.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch import nn

LAYERS = 80
WIDTH = 32
BATCH = 16


def make_model() -> nn.Sequential:
    """Very deep and very narrow: a hundred and sixty weights, none of them larger than a thousand numbers."""
    layers: list[nn.Module] = []
    for _ in range(LAYERS):
        layers += [nn.Linear(WIDTH, WIDTH), nn.ReLU()]
    return nn.Sequential(*layers)


def train(cured: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Train for `steps` steps and call `on_step` after each."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = make_model().to(device)
    parameters = list(model.parameters())
    optimizer = torch.optim.Adam(parameters, fused=True) if cured else torch.optim.Adam(parameters, foreach=False)
    inputs = torch.randn(BATCH, WIDTH, device=device)
    for _ in range(steps):
        loss = model(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        on_step()
