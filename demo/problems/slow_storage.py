"""Problem: one worker reads a small file per sample, on storage that takes over half a millisecond to open a file.

Fix: two workers, which wait for the storage at the same time. A pause before each open simulates slow storage.
"""
# mypy: allow-untyped-calls

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from demo.models import perceptron

BATCH = 32
FEATURES = 1024
SAMPLES = 256
SECONDS_PER_OPEN = 0.0006  # as on a network file system or a hard disk without the page cache


def read(path: Path) -> torch.Tensor:
    """Returns the floats of one file, after a pause that simulates slow storage."""
    time.sleep(SECONDS_PER_OPEN)
    return torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.float32)


class Files(Dataset[tuple[torch.Tensor, int]]):
    """Samples in one file each."""

    def __init__(self, folder: Path, length: int) -> None:
        self.folder, self.length = folder, length
        for number in range(SAMPLES):
            (folder / str(number)).write_bytes(torch.randn(FEATURES).numpy().tobytes())

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return read(self.folder / str(index % SAMPLES)), index % 10


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        files = Files(Path(folder), steps * BATCH)
        batches = DataLoader(files, BATCH, num_workers=2 if fixed else 1, persistent_workers=True)
        model = perceptron(FEATURES, 2048, 1024, 1024, 10).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for features, labels in batches:
            loss = functional.cross_entropy(model(features.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            on_step()
