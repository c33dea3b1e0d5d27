"""Problem: each step reads a dozen metrics one by one, and each read empties the device's launch queue.

Fix: stack the metrics on the device and read them together, once per ten steps.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch.nn import functional

from demo.models import perceptron

BATCH = 512
FEATURES = 2048
HIDDEN = 8192
STEPS_PER_READ = 10


def metrics_of(logits: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
    """Returns common training metrics as scalar tensors on the device."""
    chances = logits.softmax(-1)
    best = chances.argmax(-1)
    return {
        "loss": functional.cross_entropy(logits, labels),
        "accuracy": (best == labels).float().mean(),
        "confidence": chances.amax(-1).mean(),
        "entropy": -(chances * chances.clamp_min(1e-9).log()).sum(-1).mean(),
        "logit_norm": logits.norm(),
        "logit_largest": logits.amax(),
        **{f"class_{each}": (best == each).float().mean() for each in range(6)},
    }


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each."""
    model = perceptron(FEATURES, HIDDEN, HIDDEN, 10).to(device)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    inputs, labels = torch.randn(BATCH, FEATURES, device=device), torch.randint(10, (BATCH,), device=device)
    history: list[dict[str, float]] = []
    for step in range(steps):
        logits = model(inputs)
        metrics = metrics_of(logits, labels)
        optimizer.zero_grad()
        metrics["loss"].backward()
        optimizer.step()
        if not fixed:
            history.append({name: value.item() for name, value in metrics.items()})
        elif step % STEPS_PER_READ == 0:
            history.append(dict(zip(metrics, torch.stack(list(metrics.values())).tolist(), strict=True)))
        on_step()
