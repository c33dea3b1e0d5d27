"""The illness: gradients are accumulated over sixteen portions, and DDP sends all of them around after each portion.

The cure: `no_sync()` for all portions but the last, so that the ranks talk once for each optimizer step.
"""
# mypy: allow-untyped-calls

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from demo.models import perceptron
from demo.workers import beside, group

BATCH = 4
PORTIONS = 16
FEATURES = 2048


def rank(number: int, folder: Path, cured: bool, steps: int, on_step: Callable[[], None] | None, kind: str) -> None:
    """What each of the two ranks does; `on_step` is called by the one that has one."""
    torch.set_num_threads(1)
    with group(number, folder, "nccl" if kind == "cuda" else "gloo"):
        _train(cured, steps, on_step, kind)  # its model is gone before its group is


def _train(cured: bool, steps: int, on_step: Callable[[], None] | None, kind: str) -> None:
    model = DistributedDataParallel(perceptron(FEATURES, 2048, 10).to(kind))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, labels = torch.randn(BATCH, FEATURES, device=kind), torch.randint(10, (BATCH,), device=kind)
    for _ in range(steps):
        optimizer.zero_grad()
        for portion in range(PORTIONS):
            quiet = cured and portion < PORTIONS - 1
            with model.no_sync() if quiet else contextlib.nullcontext():
                functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        if on_step is not None:
            on_step()


def train(cured: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Train for `steps` steps on two ranks and call `on_step` after each step of the first."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with beside(rank, 1, folder, cured, steps, None, device.type):
            rank(0, folder, cured, steps, on_step, device.type)
