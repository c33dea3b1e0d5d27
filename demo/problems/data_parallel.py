"""Problem: `nn.DataParallel` copies the model to every GPU in every step, from one Python process.

Fix: the same batch on one GPU is often faster already; use `DistributedDataParallel` for several GPUs.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from demo.models import Encoder

BATCH = 32
LENGTH = 64
WIDTH = 1024


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each."""
    plain = Encoder(WIDTH, layers=6).to(device)
    model: nn.Module = plain if fixed else nn.DataParallel(plain)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    inputs, labels = torch.randn(BATCH, LENGTH, WIDTH, device=device), torch.randint(10, (BATCH,), device=device)
    for _ in range(steps):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        on_step()
