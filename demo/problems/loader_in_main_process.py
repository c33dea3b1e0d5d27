"""Problem: the training process decodes and augments its own images, so the model is idle meanwhile.

Fix: a persistent DataLoader worker for each core; they prepare the next batches while the model computes.
"""
# mypy: allow-untyped-calls

import os
import zlib
from collections.abc import Callable

import torch
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from demo.models import classifier

BATCH = 12
SIDE = 832  # pixels of a stored image
CROP = 224  # pixels that the model sees


class Photos(Dataset[tuple[torch.Tensor, int]]):
    """Losslessly compressed RGB images that are decoded and augmented on access, as in any image data set."""

    def __init__(self, length: int) -> None:
        self.length = length
        generator = torch.Generator().manual_seed(0)
        coarse = torch.randint(0, 256, (8, 3, SIDE // 8, SIDE // 8), dtype=torch.uint8, generator=generator)
        self.stored = [zlib.compress(picture.numpy().tobytes()) for picture in functional.interpolate(coarse, SIDE)]

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        raw = bytearray(zlib.decompress(self.stored[index % len(self.stored)]))
        picture = torch.frombuffer(raw, dtype=torch.uint8).view(3, SIDE, SIDE)
        return augment(picture), index % 10


def augment(picture: torch.Tensor) -> torch.Tensor:
    """Returns a random crop, scaled to the model's input size, flipped with probability 0.5, and normalised."""
    side = int(torch.randint(SIDE * 3 // 4, SIDE, ()))
    top, left = (int(torch.randint(SIDE - side, ())) for _ in range(2))
    crop = picture[:, top : top + side, left : left + side].float().div_(255)
    small = functional.interpolate(crop[None], (CROP, CROP), mode="bilinear", antialias=True)[0]
    return (small.flip(-1) if torch.rand(()) < 0.5 else small).sub_(0.5).div_(0.25)


def cores() -> int:
    """Returns the number of cores of this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each."""
    train_with(cores() if fixed else 0, False, steps, on_step, device)


def train_with(workers: int, pinned: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains on one thread with `workers` workers, and batches in pinned memory if `pinned`."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    batches = DataLoader(
        Photos(steps * BATCH), BATCH, num_workers=workers, pin_memory=pinned, persistent_workers=workers > 0
    )
    model = classifier((24, 48, 96)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for pictures, labels in batches:
        optimizer.zero_grad()
        inputs, targets = pictures.to(device, non_blocking=pinned), labels.to(device, non_blocking=pinned)
        loss = functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        on_step()
