"""Problem: the loader's workers blur and distort every image on the CPU, and the GPU waits for them.

Fix: the workers return raw bytes, and the GPU augments a whole batch at once.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from demo.models import classifier

BATCH = 64
SIDE = 224
KERNEL = torch.ones(3, 1, 9, 9) / 81


def augment(pictures: torch.Tensor) -> torch.Tensor:
    """Converts bytes (n, 3, h, w) to floats: scaled, blurred, rotated a little and flipped, all images alike."""
    floats = pictures.float().div(255)
    blurred = functional.conv2d(floats, KERNEL.to(floats.device), padding=4, groups=3)
    turn = torch.tensor([[1.0, 0.1, 0.0], [-0.1, 1.0, 0.0]], device=floats.device).expand(len(floats), 2, 3)
    grid = functional.affine_grid(turn, list(floats.shape), align_corners=False)
    return functional.grid_sample(blurred, grid, align_corners=False).flip(-1)


class Pictures(Dataset[tuple[torch.Tensor, int]]):
    """Images as bytes, augmented one by one unless the training does it."""

    def __init__(self, length: int, augmented: bool) -> None:
        self.length, self.augmented = length, augmented
        self.stored = torch.randint(0, 256, (16, 3, SIDE, SIDE), dtype=torch.uint8)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        picture = self.stored[index % len(self.stored)]
        return (augment(picture[None])[0] if self.augmented else picture), index % 10


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each. Both halves have four workers and pinned memory."""
    pictures = Pictures(steps * BATCH, augmented=not fixed)
    batches = DataLoader(pictures, BATCH, num_workers=4, pin_memory=True, persistent_workers=True)
    model = classifier((64, 128, 256, 512)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for batch, labels in batches:
        inputs = batch.to(device, non_blocking=True)
        if fixed:
            inputs = augment(inputs)
        loss = functional.cross_entropy(model(inputs), labels.to(device, non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        on_step()
