"""Small trainings for the monitor's tests."""

from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

SAMPLES, BATCH = 40, 4


class Numbers(Dataset[Any]):
    """A data set that a spawned worker can import."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> Any:
        return torch.full((3,), float(index)), torch.ones(1)


class Model(torch.nn.Module):
    """One layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.layer(batch)


class Training:
    """A model, its optimizer and its loader."""

    def __init__(self, workers: int = 0, start: str | None = None) -> None:
        self.model = Model()
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.loader = DataLoader(Numbers(), batch_size=BATCH, num_workers=workers, multiprocessing_context=start)

    def step(self, batch: Any) -> None:
        self.optimizer.zero_grad()
        torch.nn.functional.mse_loss(self.model(batch[0]), batch[1]).backward()
        self.optimizer.step()

    def run(self, epochs: int = 1) -> None:
        for _ in range(epochs):
            for batch in self.loader:
                self.step(batch)


STEPS = SAMPLES // BATCH
