"""Problem: gradients are accumulated over sixteen micro-batches, and DDP all-reduces them after each one.

Fix: use `no_sync()` for all micro-batches except the last, so that ranks communicate once per optimizer step.
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
from demo.second_process import process_group, second_process

BATCH = 4
MICRO_BATCHES = 16
FEATURES = 2048


def rank(number: int, folder: Path, fixed: bool, steps: int, on_step: Callable[[], None] | None, kind: str) -> None:
    """Runs one of the two ranks; `on_step` is called by the rank that has one."""
    torch.set_num_threads(1)
    with process_group(number, folder, "nccl" if kind == "cuda" else "gloo"):
        _train(fixed, steps, on_step, kind)  # deletes its model before the process group ends


def _train(fixed: bool, steps: int, on_step: Callable[[], None] | None, kind: str) -> None:
    model = DistributedDataParallel(perceptron(FEATURES, 2048, 10).to(kind))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, labels = torch.randn(BATCH, FEATURES, device=kind), torch.randint(10, (BATCH,), device=kind)
    for _ in range(steps):
        optimizer.zero_grad()
        for micro_batch in range(MICRO_BATCHES):
            local = fixed and micro_batch < MICRO_BATCHES - 1
            with model.no_sync() if local else contextlib.nullcontext():
                functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        if on_step is not None:
            on_step()


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps on two ranks and calls `on_step` after each step of the first."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with second_process(rank, 1, folder, fixed, steps, None, device.type):
            rank(0, folder, fixed, steps, on_step, device.type)
