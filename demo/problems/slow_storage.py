"""Problem: one small file per sample, on storage that takes a millisecond to open a file.

Fix: pack the samples into shards, each read once with a single open. A pause before each open simulates slow storage.
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
SHARD = 64  # samples per packed file
SECONDS_PER_OPEN = 0.001  # as on a network file system or a hard disk without the page cache


def read(path: Path) -> torch.Tensor:
    """Returns the floats of one file, after a pause that simulates slow storage."""
    time.sleep(SECONDS_PER_OPEN)
    return torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.float32)


class Files(Dataset[tuple[torch.Tensor, int]]):
    """Samples in files of `per_file` samples. The last opened file stays in memory."""

    def __init__(self, folder: Path, per_file: int, length: int) -> None:
        self.folder, self.per_file, self.length = folder, per_file, length
        self.opened: tuple[int, torch.Tensor] = (-1, torch.empty(0))
        for number in range(SAMPLES // per_file):
            (folder / str(number)).write_bytes(torch.randn(per_file, FEATURES).numpy().tobytes())

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        number, within = divmod(index % SAMPLES, self.per_file)
        if self.opened[0] != number:
            self.opened = (number, read(self.folder / str(number)).view(self.per_file, FEATURES))
        return self.opened[1][within], index % 10


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each. Both halves have one worker."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        files = Files(Path(folder), SHARD if fixed else 1, steps * BATCH)
        batches = DataLoader(files, BATCH, num_workers=1, persistent_workers=True)
        model = perceptron(FEATURES, 2048, 1024, 1024, 10).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for features, labels in batches:
            loss = functional.cross_entropy(model(features.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            on_step()
