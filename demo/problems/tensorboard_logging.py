"""Problem: every step writes scalars and a histogram of each weight to TensorBoard, directly from the device.

Fix: log once per fifty steps.
"""
# mypy: allow-untyped-calls

import tempfile
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional
from torch.utils.tensorboard import SummaryWriter

from demo.models import perceptron

BATCH = 128
STEPS_PER_LOG = 50


def log(writer: SummaryWriter, model: nn.Module, loss: torch.Tensor, step: int) -> None:
    """Logs the loss, and histograms of each weight and its gradient."""
    writer.add_scalar("loss", loss, step)
    for name, weight in model.named_parameters():
        writer.add_histogram(f"weight/{name}", weight, step)
        if weight.grad is not None:
            writer.add_histogram(f"gradient/{name}", weight.grad, step)


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each."""
    torch.manual_seed(0)
    model = perceptron(1024, 1024, 1024, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, labels = torch.randn(BATCH, 1024, device=device), torch.randint(10, (BATCH,), device=device)
    with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
        for step in range(1, steps + 1):
            loss = functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if not fixed or step % STEPS_PER_LOG == 0:
                log(writer, model, loss, step)
            on_step()
