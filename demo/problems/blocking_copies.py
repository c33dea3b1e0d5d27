"""Problem: batches are in pageable memory, and `.to(device)` waits for each copy while the device is idle.

Fix: pinned memory and `non_blocking=True`, so that a batch is copied during the previous step.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable, Iterator

import torch
from torch.nn import functional

from demo.models import classifier

BATCH = 128
SIDE = 224


def batches(steps: int, pinned: bool) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yields four batches in host memory in turn: they cost nothing except the copy to the device."""
    made = []
    for _ in range(4):
        pictures, labels = torch.randn(BATCH, 3, SIDE, SIDE), torch.randint(10, (BATCH,))
        made.append((pictures.pin_memory(), labels.pin_memory()) if pinned else (pictures, labels))
    for step in range(steps):
        yield made[step % len(made)]


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each."""
    model = classifier((32, 64, 128, 256)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    copies = torch.cuda.Stream() if fixed else None
    waiting: tuple[torch.Tensor, torch.Tensor] | None = None
    for pictures, labels in batches(steps + (copies is not None), pinned=fixed):
        if copies is None:
            ready: tuple[torch.Tensor, torch.Tensor] | None = (pictures.to(device), labels.to(device))
        else:
            # Copy the next batch on a separate stream while this one is processed.
            torch.cuda.current_stream().wait_stream(copies)
            ready = waiting
            with torch.cuda.stream(copies):
                waiting = (pictures.to(device, non_blocking=True), labels.to(device, non_blocking=True))
        if ready is None:
            continue
        for tensor in ready:
            tensor.record_stream(torch.cuda.current_stream())
        loss = functional.cross_entropy(model(ready[0]), ready[1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        on_step()
