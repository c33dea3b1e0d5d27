"""The illness: DDP on GPUs with the gloo backend, which takes every gradient through the host's memory.

The cure: nccl, which goes from GPU to GPU.
"""
# mypy: allow-untyped-calls

import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from demo.models import Encoder
from demo.workers import beside, group

BATCH = 16
LENGTH = 128
WIDTH = 1024


def rank(number: int, folder: Path, cured: bool, steps: int, on_step: Callable[[], None] | None) -> None:
    """What each of the two ranks does, each on a GPU of its own."""
    with group(number, folder, "nccl" if cured else "gloo"):
        _train(steps, on_step)  # its model is gone before its group is


def _train(steps: int, on_step: Callable[[], None] | None) -> None:
    model = DistributedDataParallel(Encoder(WIDTH, layers=6).cuda())
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    inputs, labels = torch.randn(BATCH, LENGTH, WIDTH, device="cuda"), torch.randint(10, (BATCH,), device="cuda")
    for _ in range(steps):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if on_step is not None:
            on_step()


def train(cured: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Train for `steps` steps on two GPUs and call `on_step` after each step of the first."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with beside(rank, 1, folder, cured, steps, None):
            rank(0, folder, cured, steps, on_step)
