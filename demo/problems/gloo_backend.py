"""Problem: DDP on GPUs with the gloo backend copies every gradient through host memory.

Fix: the nccl backend, which copies from GPU to GPU.
"""
# mypy: allow-untyped-calls

import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from demo.models import Encoder
from demo.second_process import process_group, second_process

BATCH = 16
LENGTH = 128
WIDTH = 1024


def rank(number: int, folder: Path, fixed: bool, steps: int, on_step: Callable[[], None] | None) -> None:
    """Runs one of the two ranks, each on its own GPU."""
    with process_group(number, folder, "nccl" if fixed else "gloo"):
        _train(steps, on_step)  # deletes its model before the process group ends


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


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps on two GPUs and calls `on_step` after each step of the first."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with second_process(rank, 1, folder, fixed, steps, None):
            rank(0, folder, fixed, steps, on_step)
