"""Problem: a transformer in full fp32 on a device with tensor cores that could do its matmuls many times faster.

Fix: bf16 under autocast. `torch.set_float32_matmul_precision("high")` (TF32) would bring about half of the gain.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch.nn import functional

from demo.models import Encoder

BATCH = 32
LENGTH = 256
WIDTH = 1024


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each."""
    torch.set_float32_matmul_precision("highest")
    model = Encoder(WIDTH, layers=6, heads=16).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    inputs, labels = torch.randn(BATCH, LENGTH, WIDTH, device=device), torch.randint(10, (BATCH,), device=device)
    for _ in range(steps):
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=fixed):
            loss = functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        on_step()
