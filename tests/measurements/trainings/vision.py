"""Trainings on images: a convolutional network, a vision transformer, and an autoencoder that reads files."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

PIXELS = 32


class Photos(Dataset[tuple[Tensor, int]]):
    """Small colour images that are shifted and brightened at random."""

    def __init__(self, slow: bool, length: int) -> None:
        self.slow, self.length, self.random = slow, length, np.random.default_rng(0)
        self.images = self.random.random((64, 3, PIXELS, PIXELS), dtype=np.float32)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = self.images[index % 64]
        shift, gain = int(self.random.integers(4)), float(self.random.uniform(0.8, 1.2))
        image = shifted_by_row(image, shift, gain) if self.slow else np.clip(np.roll(image, shift, 2) * gain, 0, 1)
        return torch.from_numpy(image), index % 10


def shifted_by_row(image: np.ndarray, shift: int, gain: float) -> np.ndarray:
    """Returns the image shifted and brightened, row by row."""
    out = image.copy()
    for channel in out:
        for row in channel:  # planted: cnn/python_transform
            row[:] = np.clip(np.roll(row, shift) * gain, 0, 1)
    return out


def collate_lists(samples: list[tuple[Tensor, int]]) -> tuple[Tensor, Tensor]:
    """Returns a batch that is built through Python lists."""
    images = torch.tensor([image.tolist() for image, _ in samples])  # planted: cnn/slow_collate
    return images, torch.tensor([label for _, label in samples])


def validate(model: nn.Module, batches: list[tuple[Tensor, Tensor]]) -> float:
    """Returns the accuracy on held-out batches."""
    model.eval()
    with torch.no_grad():
        answers = [model(images).argmax(1) for images, _ in batches]  # planted: cnn/validation
        right = sum(int((answer == labels).sum()) for answer, (_, labels) in zip(answers, batches, strict=True))
    model.train()
    return right / sum(len(labels) for _, labels in batches)


def cnn(problem: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains a convolutional network to classify images."""
    bad = "" if fixed else problem
    photos = Photos(bad == "python_transform" or problem == "no_workers", steps * 16)
    workers = 2 if problem == "no_workers" and fixed else 0  # planted: cnn/no_workers
    loader = DataLoader(photos, 16, num_workers=workers, collate_fn=collate_lists if bad == "slow_collate" else None)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(4096, 256), nn.ReLU(),
        nn.Linear(256, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    held_out = [(torch.rand(32, 3, PIXELS, PIXELS), torch.randint(10, (32,))) for _ in range(3)]
    total = 0.0
    with tempfile.TemporaryDirectory() as folder:
        if problem == "histograms":
            from torch.utils.tensorboard import SummaryWriter

            writer = SummaryWriter(folder)
        for step, (images, labels) in enumerate(loader):
            loss = functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if problem == "item_per_step":
                total += loss.item()  # planted: cnn/item_per_step
            if bad == "validation" and step % 2 == 0:
                validate(model, held_out)
            if bad == "checkpoint" and step % 2 == 0:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save(state, Path(folder) / "last.pt")  # planted: cnn/checkpoint
            if bad == "histograms":
                for name, parameter in model.named_parameters():
                    writer.add_histogram(name, parameter, step)  # planted: cnn/histograms
            on_step()
        if problem == "histograms":
            writer.close()


class Attention(nn.Module):
    """Self-attention over patches."""

    def __init__(self, width: int, heads: int, by_head: bool) -> None:
        super().__init__()
        self.heads, self.by_head = heads, by_head
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (part.unflatten(2, (self.heads, -1)) for part in self.qkv(x).chunk(3, 2))
        if self.by_head:
            mixed = self.head_by_head(query, key, value)
        else:
            mixed = functional.scaled_dot_product_attention(*(p.transpose(1, 2) for p in (query, key, value)))
            mixed = mixed.transpose(1, 2)
        return self.out(mixed.flatten(2))

    def head_by_head(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Returns the attention, computed for one head of one sample at a time."""
        samples = []
        for q, k, v in zip(query, key, value, strict=True):
            heads = [
                (q[:, h] @ k[:, h].T / q.shape[2] ** 0.5).softmax(1) @ v[:, h]  # planted: vit/head_by_head
                for h in range(self.heads)
            ]
            samples.append(torch.stack(heads, 1))
        return torch.stack(samples)


class Block(nn.Module):
    """One layer of the vision transformer."""

    def __init__(self, width: int, by_head: bool) -> None:
        super().__init__()
        self.attention, self.norms = Attention(width, 4, by_head), nn.ModuleList(nn.LayerNorm(width) for _ in "12")
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norms[0](x))
        return x + self.mlp(self.norms[1](x))


def average_by_row(averages: list[Tensor], model: nn.Module) -> None:
    """Updates the moving average of the weights."""
    for average, parameter in zip(averages, model.parameters(), strict=True):
        for kept, row in zip(average, parameter.detach(), strict=True):
            kept.mul_(0.99).add_(row, alpha=0.01)  # planted: vit/average_by_row


def vit(problem: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains a vision transformer with a moving average of its weights."""
    bad = "" if fixed else problem
    width = 128
    model = nn.Sequential(
        nn.Conv2d(3, width, 4, 4), nn.Flatten(2), Transpose(), *(Block(width, bad == "head_by_head") for _ in range(3))
    )
    images, targets = torch.rand(8, 3, PIXELS, PIXELS), torch.rand(8, 64, width)
    if bad == "float64":
        model, images, targets = model.double(), images.double(), targets.double()  # planted: vit/float64
    averages = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for step in range(steps):
        loss = functional.mse_loss(model(images), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if bad == "average_by_row":
            average_by_row(averages, model)
        else:
            torch._foreach_lerp_(averages, [parameter.detach() for parameter in model.parameters()], 0.01)
        if problem == "printed_loss":
            print(f"step {step}: {loss}", flush=True)  # planted: vit/printed_loss
        on_step()


class Transpose(nn.Module):
    """Swaps the last two dimensions."""

    def forward(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2)


class Scans(Dataset[Tensor]):
    """Grey images in files, one each; a pause before each read simulates slow storage."""

    def __init__(self, folder: Path, seconds_per_read: float, length: int) -> None:
        self.folder, self.seconds_per_read, self.length = folder, seconds_per_read, length
        for number in range(64):
            np.save(folder / f"{number}.npy", np.random.default_rng(number).random(1024, dtype=np.float32))

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Tensor:
        return torch.from_numpy(self.read(index % 64))

    def read(self, number: int) -> np.ndarray:
        """Returns one image."""
        if self.seconds_per_read:
            time.sleep(self.seconds_per_read)  # planted: autoencoder/slow_read
        return np.load(self.folder / f"{number}.npy")


def noise_fields(random: np.random.Generator) -> Tensor:
    """Returns correlated noise for one batch, drawn with numpy on the training's thread."""
    fields = random.normal(size=(32, 24, 1024)).mean(1)  # planted: autoencoder/numpy_noise
    return torch.from_numpy(fields.astype(np.float32))


def autoencoder(problem: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains a denoising autoencoder on images from files."""
    bad = "" if fixed else problem
    random = np.random.default_rng(0)
    pause = {"slow_read": 0.0 if fixed else 0.001, "too_few_workers": 0.002}.get(problem, 0.0)
    workers = {"too_few_workers": 4 if fixed else 1, "ample_workers": 2}  # planted: autoencoder/too_few_workers
    model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 64), nn.Linear(64, 2048), nn.ReLU())
    model.append(nn.Linear(2048, 1024))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    still = torch.randn(32, 1024)
    with tempfile.TemporaryDirectory() as folder:
        scans = Scans(Path(folder), pause, steps * 32)
        for images in DataLoader(scans, 32, num_workers=workers.get(problem, 0)):  # planted: autoencoder/ample_workers
            noise = noise_fields(random) if bad == "numpy_noise" else still
            loss = functional.mse_loss(model(images + 0.1 * noise), images)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            on_step()
