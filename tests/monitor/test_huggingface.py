"""The callback in a real training with Hugging Face's Trainer, if transformers and accelerate are installed."""

import gc
from pathlib import Path
from typing import Any

import pytest
import torch
from monitor.training import Model
from monitor.written import read

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")
pytestmark = pytest.mark.filterwarnings("ignore")

DATA = [{"x": torch.full((3,), float(index)), "labels": torch.ones(1)} for index in range(40)]


class Net(torch.nn.Module):
    def __init__(self, fails: bool = False) -> None:
        super().__init__()
        self.inner = Model()
        self.fails = fails

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> Any:
        if self.fails:
            raise ValueError("mine")
        result = self.inner(x)
        return {"loss": torch.nn.functional.mse_loss(result, labels), "logits": result}


def trainer(tmp_path: Path, model: Any) -> Any:
    from tb_bottleneck.monitor.huggingface import MonitorCallback

    options = transformers.TrainingArguments(
        output_dir=str(tmp_path), per_device_train_batch_size=4, gradient_accumulation_steps=2, num_train_epochs=2,
        eval_strategy="epoch", save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    return transformers.Trainer(
        model, options, train_dataset=DATA, eval_dataset=DATA[:8], callbacks=[MonitorCallback(captures=0)]
    )


def test_a_step_for_each_update_and_evaluation_is_none(tmp_path: Path) -> None:
    trainer(tmp_path, Net()).train()
    written = read(tmp_path)
    assert written.numbers == list(range(10))
    assert sum(written.column("samples")) == 80, "batches fetched ahead are counted once"
    assert len(written.column("forward")) == 10
    assert max(written.column("evaluation")) > 0


def test_after_a_training_that_failed_the_next_one_is_monitored(tmp_path: Path) -> None:
    """The Trainer does not report an exception to its callbacks."""
    with pytest.raises(ValueError, match="mine"):
        trainer(tmp_path / "first", Net(fails=True)).train()
    trainer(tmp_path / "second", Net()).train()
    assert len(read(tmp_path / "second").numbers) == 10
    gc.collect()
