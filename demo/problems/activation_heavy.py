"""No problem: a network of cheap layers with large activations, bound by memory bandwidth.

The other variant is not a fix but the opposite: large filters over as many pixels, bound by arithmetic. Faster memory
would help the first, faster tensor cores the second; neither variant has a problem in its loop.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch import nn

SIDE = {"cuda": 224, "cpu": 64}
BATCH = {"cuda": 32, "cpu": 4}


def make_model(fixed: bool) -> nn.Sequential:
    """Returns depthwise layers with much normalisation, or dense 7x7 convolutions."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 1)]
    for _ in range(6):
        if fixed:
            layers += [nn.Conv2d(64, 64, 7, padding=3), nn.ReLU()]
        else:
            layers += [nn.Conv2d(64, 64, 1, groups=64), nn.BatchNorm2d(64), nn.Hardswish(), nn.BatchNorm2d(64)]
    return nn.Sequential(*layers)


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each."""
    torch.manual_seed(0)
    model = make_model(fixed).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    inputs = torch.randn(BATCH[device.type], 3, SIDE[device.type], SIDE[device.type], device=device)
    for _ in range(steps):
        loss = model(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        on_step()
