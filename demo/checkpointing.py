"""The illness: every second step stops to write the model and the optimizer to disk.

The cure: to write one every few minutes instead, so that none falls into the steps that are watched.
"""
# mypy: allow-untyped-calls

import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

BATCH = 16
FEATURES = 2048
HIDDEN = 4096
STEPS_PER_CHECKPOINT = 2


def make_model() -> nn.Sequential:
    """A perceptron of eight million weights; the momentum is as large again, and both are in each checkpoint."""
    return nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 10))


def train(cured: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Train for `steps` steps and call `on_step` after each."""
    torch.manual_seed(0)
    model = make_model().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    features, labels = torch.randn(BATCH, FEATURES, device=device), torch.randint(10, (BATCH,), device=device)
    with tempfile.TemporaryDirectory() as folder:
        for step in range(1, steps + 1):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(features), labels)
            loss.backward()
            optimizer.step()
            if not cured and step % STEPS_PER_CHECKPOINT == 0:
                save(model, optimizer, step, Path(folder))
            on_step()


def save(model: nn.Module, optimizer: torch.optim.Optimizer, step: int, folder: Path) -> None:
    """Write everything that is needed to go on from here."""
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, folder / "latest.pt")
