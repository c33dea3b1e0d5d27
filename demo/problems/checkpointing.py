"""Problem: every third step writes the model and the optimizer to disk.

Fix: write a checkpoint every few minutes, so that none is in the recorded steps.
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
STEPS_PER_CHECKPOINT = 3


def make_model() -> nn.Sequential:
    """Returns a perceptron with eight million weights. A checkpoint also contains the momentum of the same size."""
    return nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 10))


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each."""
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
            if not fixed and step % STEPS_PER_CHECKPOINT == 0:
                save(model, optimizer, step, Path(folder))
            on_step()


def save(model: nn.Module, optimizer: torch.optim.Optimizer, step: int, folder: Path) -> None:
    """Writes everything that is needed to resume the training."""
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, folder / "latest.pt")
