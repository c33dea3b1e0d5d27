"""The illness, if it is one: a network of cheap layers over large activations, which the memory bandwidth bounds.

The other half is no cure but its opposite: large filters over as many pixels, which the arithmetic bounds. A faster
memory would help the first, faster tensor cores the second; neither half has anything to mend in the loop.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch import nn

SIDE = {"cuda": 224, "cpu": 64}
BATCH = {"cuda": 32, "cpu": 4}


def make_model(cured: bool) -> nn.Sequential:
    """Depthwise layers with much normalisation, or dense ones of 7x7."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 1)]
    for _ in range(6):
        if cured:
            layers += [nn.Conv2d(64, 64, 7, padding=3), nn.ReLU()]
        else:
            layers += [nn.Conv2d(64, 64, 1, groups=64), nn.BatchNorm2d(64), nn.Hardswish(), nn.BatchNorm2d(64)]
    return nn.Sequential(*layers)


def train(cured: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Train for `steps` steps and call `on_step` after each."""
    torch.manual_seed(0)
    model = make_model(cured).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    inputs = torch.randn(BATCH[device.type], 3, SIDE[device.type], SIDE[device.type], device=device)
    for _ in range(steps):
        loss = model(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        on_step()
