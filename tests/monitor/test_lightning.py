"""The callback in a real Lightning training, if Lightning is installed."""

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from monitor.training import Model, Numbers
from monitor.written import read
from torch.utils.data import DataLoader

lightning = pytest.importorskip("lightning.pytorch")
pytestmark = pytest.mark.filterwarnings("ignore")


class Module(lightning.LightningModule):  # type: ignore[misc]
    def __init__(self, fails_at: int = -1) -> None:
        super().__init__()
        self.inner = Model()
        self.fails_at = fails_at

    def training_step(self, batch: Any, index: int) -> Any:
        if index == self.fails_at:
            raise ValueError("mine")
        return torch.nn.functional.mse_loss(self.inner(batch[0]), batch[1])

    def validation_step(self, batch: Any, index: int) -> None:
        self.inner(batch[0])

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), 0.1)


def fit(tmp_path: Path, module: Any, **options: Any) -> None:
    from tb_bottleneck.monitor.lightning import MonitorCallback

    trainer = lightning.Trainer(
        accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=tmp_path, callbacks=[MonitorCallback(captures=0)], **options,
    )  # fmt: skip
    trainer.fit(module, DataLoader(Numbers(), batch_size=4), DataLoader(Numbers(), batch_size=10))


def test_a_step_for_each_update_and_validation_is_none(tmp_path: Path) -> None:
    fit(tmp_path, Module(), max_epochs=2, accumulate_grad_batches=2)
    written = read(tmp_path)
    assert written.numbers == list(range(10))
    assert written.column("samples") == [8] * 10
    assert max(written.column("evaluation")) > 0
    assert all(value > 0 for value in written.column("optimizer"))


def test_a_training_that_fails_ends_its_monitor(tmp_path: Path) -> None:
    from tb_bottleneck.monitor import monitor

    with pytest.raises(ValueError, match="mine"):
        fit(tmp_path, Module(fails_at=5), max_epochs=1)
    assert monitor._active is None
    assert len(read(tmp_path).numbers) == 5


def test_it_can_be_copied() -> None:
    from tb_bottleneck.monitor.lightning import MonitorCallback

    assert pickle.loads(pickle.dumps(copy.deepcopy(MonitorCallback(captures=0))))._monitor._captures == 0
