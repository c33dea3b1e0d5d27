"""Problem: layer widths that are not multiples of eight prevent the fast tensor-core kernels.

Fix: pad the same layers to the next multiple of sixty-four.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch.nn import functional

from demo.models import perceptron

BATCH = 4096
WIDTH = {False: 4093, True: 4096}  # width of the layers, by the value of the switch
VOCABULARY = {False: 10007, True: 10048}


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each."""
    width = WIDTH[fixed]
    model = perceptron(width, width, width, VOCABULARY[fixed]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, labels = torch.randn(BATCH, width, device=device), torch.randint(10000, (BATCH,), device=device)
    for _ in range(steps):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        on_step()
