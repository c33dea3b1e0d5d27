"""A generative adversarial network on small grey images."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional


def judge_one_by_one(discriminator: nn.Module, images: Tensor) -> Tensor:
    """Returns the discriminator's scores, computed image by image."""
    return torch.cat([discriminator(image[None]) for image in images])  # planted: gan/one_by_one


def write_samples(images: Tensor, path: Path) -> None:
    """Writes the generated images to a compressed file."""
    pixels = (images.detach().numpy() * 255).astype(np.uint8).reshape(-1, 32, 32)
    np.savez_compressed(path, *pixels)  # planted: gan/samples_each_step


def gan(problem: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains a generator and a discriminator in turn."""
    bad = "" if fixed else problem
    width = 128 if problem == "one_by_one" else 512
    generator = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 1024), nn.Sigmoid())
    discriminator = nn.Sequential(nn.Linear(1024, width), nn.LeakyReLU(0.2), nn.Linear(width, 1))
    fast, slow = (torch.optim.Adam(part.parameters(), fused=True) for part in (generator, discriminator))
    real, losses = torch.rand(64, 1024), []
    score = judge_one_by_one if bad == "one_by_one" else lambda part, images: part(images)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(steps):
            fake = generator(torch.randn(64, 64))
            slow.zero_grad()
            found = functional.softplus(-score(discriminator, real)) + functional.softplus(
                score(discriminator, fake.detach())
            )
            found.mean().backward()
            slow.step()
            fast.zero_grad()
            fooled = functional.softplus(-score(discriminator, fake)).mean()
            fooled.backward()
            fast.step()
            if problem == "losses_kept":
                losses.append((found.mean(), fooled))  # planted: gan/losses_kept
            if bad == "samples_each_step":
                write_samples(fake, Path(folder) / "samples.npz")
            on_step()
