"""A training with Lightning, as losses by step."""

from pathlib import Path
from typing import Any

import pytest
import torch
from monitor.training import Model, Numbers
from torch.utils.data import DataLoader

lightning = pytest.importorskip("lightning.pytorch")


class Module(lightning.LightningModule):  # type: ignore[misc]
    """One layer behind dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.losses = Model(), []  # type: ignore[var-annotated]

    def training_step(self, batch: Any, index: int) -> Any:
        loss = torch.nn.functional.mse_loss(self.inner(torch.dropout(batch[0], 0.3, train=True)), batch[1])
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self) -> Any:
        return torch.optim.AdamW(self.parameters())


def losses(folder: Path, monitored: bool) -> list[float]:
    """Returns the losses of 50 epochs of 10 steps."""
    from tb_bottleneck.monitor.lightning import MonitorCallback

    module = Module()
    trainer = lightning.Trainer(
        accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, max_epochs=50,
        enable_model_summary=False, default_root_dir=folder, callbacks=[MonitorCallback(captures=1)] * monitored,
    )  # fmt: skip
    trainer.fit(module, DataLoader(Numbers(), batch_size=4, shuffle=True))
    return module.losses
