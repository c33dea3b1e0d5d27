"""A training with Lightning: a perceptron with convolutions that tells digits apart."""

import logging
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset[tuple[Tensor, int]]):
    """Noisy digits, drawn dot by dot or taken from memory."""

    def __init__(self, slow: bool, length: int) -> None:
        self.slow, self.length, self.images = slow, length, torch.rand(64, 1, 28, 28)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.draw(index) if self.slow else self.images[index % 64], index % 10

    def draw(self, index: int) -> Tensor:
        """Returns an image that is drawn dot by dot."""
        image = self.images[index % 64].clone()
        for dot in range(150):
            image[0, dot % 28, dot * 7 % 28] += 0.1  # planted: lightning/dot_by_dot
        return image


class Classifier(lightning.LightningModule):
    """A small convolutional network, with a confusion matrix that is counted in Python."""

    def __init__(self, count: bool, tell: bool) -> None:
        super().__init__()
        self.count, self.tell, self.confusion = count, tell, [[0] * 10 for _ in range(10)]
        self.net = nn.Sequential(
            nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3, stride=2), nn.ReLU(), nn.Flatten(),
            nn.Linear(4608, 256), nn.ReLU(), nn.Linear(256, 10),
        )  # fmt: skip

    def training_step(self, batch: Any, _: int) -> Tensor:
        images, labels = batch
        scores = self.net(images)
        if self.count:
            self.tally(scores, labels)
        loss = functional.cross_entropy(scores, labels)
        if self.tell:
            self.log("loss", loss)  # planted: lightning/logged_loss
        return loss

    def tally(self, scores: Tensor, labels: Tensor) -> None:
        """Counts the pairs of label and answer for every threshold."""
        for threshold in range(20):
            for row, label in zip(scores.softmax(1), labels, strict=True):
                if row.max() > threshold / 20:
                    self.confusion[int(label)][int(row.argmax())] += 1  # planted: lightning/tally

    def validation_step(self, batch: Any, _: int) -> None:
        self.log("loss", functional.cross_entropy(self.net(batch[0]), batch[1]))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), fused=True)


class Steps(Callback):
    """Tells the end of each step."""

    def __init__(self, on_step: Callable[[], None]) -> None:
        self.tell = on_step

    def on_train_batch_end(self, *_: Any, **__: Any) -> None:
        self.tell()


def classifier(problem: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains a classifier with Lightning's Trainer."""
    bad = "" if fixed else problem
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        save = ModelCheckpoint(folder, every_n_train_steps=1, save_top_k=-1)  # planted: lightning/checkpoint
        trainer = lightning.Trainer(
            accelerator="cpu",
            max_steps=steps,
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            enable_checkpointing=bad == "checkpoint",
            num_sanity_val_steps=0,
            val_check_interval=2 if bad == "validation" else None,  # planted: lightning/validation
            limit_val_batches=3 if bad == "validation" else 0,
            callbacks=[*([save] if bad == "checkpoint" else []), Steps(on_step)],
        )
        loader = DataLoader(Digits(bad == "dot_by_dot", steps * 32), 32)
        trainer.fit(Classifier(bad == "tally", problem == "logged_loss"), loader, DataLoader(Digits(False, 96), 32))
