"""Problem: `print(loss)` in the loop waits for the device as `.item()` does, and also formats a tensor.

Fix: print once per hundred steps.
"""
# mypy: allow-untyped-calls

import contextlib
import os
from collections.abc import Callable

import torch
from torch.nn import functional

from demo.models import classifier

BATCH = 128
SIDE = 224
STEPS_PER_LINE = 100


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each. What is printed goes nowhere, to spare the reader."""
    model = classifier((32, 64, 128)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    inputs, labels = torch.randn(BATCH, 3, SIDE, SIDE, device=device), torch.randint(10, (BATCH,), device=device)
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
        for step in range(1, steps + 1):
            logits = model(inputs)
            loss = functional.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            if not fixed or step % STEPS_PER_LINE == 0:
                print("loss", loss, "of logits", logits.detach().mean(), flush=True)
            optimizer.step()
            on_step()
