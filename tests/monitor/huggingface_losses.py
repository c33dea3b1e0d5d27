"""A training with the Trainer of Hugging Face, as losses by step."""

from pathlib import Path
from typing import Any

import pytest
import torch
from monitor.training import Model

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

DATA = [{"x": torch.full((3,), float(index)), "labels": torch.ones(1)} for index in range(40)]


class Net(torch.nn.Module):
    """One layer behind dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.losses = Model(), []  # type: ignore[var-annotated]

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> Any:
        result = self.inner(torch.dropout(x, 0.3, self.training))
        loss = torch.nn.functional.mse_loss(result, labels)
        self.losses.append(loss.item())
        return {"loss": loss, "logits": result}


def losses(folder: Path, monitored: bool) -> list[float]:
    """Returns the losses of 50 epochs of 10 steps."""
    from tb_bottleneck.monitor.huggingface import MonitorCallback

    net = Net()
    options = transformers.TrainingArguments(
        output_dir=str(folder), per_device_train_batch_size=4, num_train_epochs=50, save_strategy="no", report_to=[],
        use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    callbacks = [MonitorCallback(captures=1)] * monitored
    transformers.Trainer(net, options, train_dataset=DATA, callbacks=callbacks).train()
    return net.losses
