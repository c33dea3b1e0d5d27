"""A training on sound: a convolutional network that classifies spectrograms."""

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

SAMPLES = 8000
WINDOW, HOP = 254, 125


def spectrogram(wave: np.ndarray) -> np.ndarray:
    """Returns the magnitudes of all windows, one Fourier transform at a time."""
    taper = np.hanning(WINDOW)
    frames = []
    for begin in range(0, SAMPLES - WINDOW, HOP):
        frames.append(np.abs(np.fft.rfft(wave[begin : begin + WINDOW] * taper)))  # planted: audio/spectrogram_per_item
    return np.stack(frames, 1).astype(np.float32)[None]


def decode(wave: np.ndarray) -> np.ndarray:
    """Returns the samples of a clip; a pause simulates a read over the network."""
    time.sleep(0.006)  # planted: audio/slow_decode
    return wave


class Clips(Dataset[tuple[Tensor, int]]):
    """Clips of sound, as waves or as spectrograms."""

    def __init__(self, form: str, slow: bool, length: int) -> None:
        self.form, self.slow, self.length = form, slow, length
        self.waves = np.random.default_rng(0).normal(size=(32, SAMPLES)).astype(np.float32)
        self.kept = [spectrogram(wave) for wave in self.waves]

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        wave = self.waves[index % 32]
        if self.form == "wave":
            return torch.from_numpy(decode(wave) if self.slow else wave), index % 10
        return torch.from_numpy(spectrogram(wave) if self.slow else self.kept[index % 32]), index % 10


def log_activations(path: Path, step: int, logits: Tensor, inputs: Tensor) -> None:
    """Appends everything that the step has seen to a log."""
    line = {"step": step, "logits": logits.tolist(), "inputs": inputs.tolist()}
    with path.open("a") as log:
        log.write(json.dumps(line) + "\n")  # planted: audio/json_log


def cnn(problem: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains a convolutional network on spectrograms."""
    bad = "" if fixed else problem
    waves = problem in ("slow_decode", "batched_spectrogram")
    clips = Clips("wave" if waves else "spectrogram", bad in ("slow_decode", "spectrogram_per_item"), steps * 16)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, stride=2), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 64, 3, stride=2),
        nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(64, 10),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    taper = torch.hann_window(WINDOW)
    with tempfile.TemporaryDirectory() as folder:
        workers = 2 if problem == "slow_decode" else 0
        for step, (sound, labels) in enumerate(DataLoader(clips, 16, num_workers=workers)):
            if waves:
                sound = torch.stft(
                    sound, WINDOW, HOP, window=taper, return_complex=True
                )  # planted: audio/batched_spectrogram
                sound = sound.abs()[:, None]
            logits = model(sound)
            loss = functional.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if bad == "json_log":
                log_activations(Path(folder) / "log.jsonl", step, logits, sound[:2])
            on_step()
