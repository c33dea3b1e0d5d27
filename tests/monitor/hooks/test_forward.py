"""The forward pass of a model that was not passed to the monitor is timed if it owns the optimizer's parameters."""

import gc
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from monitor.training import Model, Training
from monitor.written import Written, read

from tb_bottleneck import Monitor
from tb_bottleneck.monitor.facts import model as model_facts

FORWARD_S = 0.01


class Slow(torch.nn.Module):
    """Sleeps in its forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        time.sleep(FORWARD_S)
        return self.layer(batch)


def trained(folder: Path, training: Any, **options: Any) -> Written:
    gc.collect()  # modules of other tests that wait for the collector
    with Monitor(folder, captures=0, every_s=0.1, **options):
        training.run(epochs=2)
    return read(folder)


def missing(written: Written) -> dict[str, str]:
    return {one.name: one.because for one in written.contexts[-1].unsupported}


def test_the_model_is_found_after_the_first_step(tmp_path: Path) -> None:
    training = Training()
    training.model = Slow()
    training.optimizer = torch.optim.SGD(training.model.parameters(), lr=0.1)
    before = dict(vars(Slow))
    written = trained(tmp_path, training)
    forward = written.column("forward")
    assert all(value > 0.9 * FORWARD_S * 1e9 for value in forward[1:])
    assert "forward" not in missing(written)
    assert dict(vars(Slow)) == before


class Evaluates(Training):
    """Runs the model in evaluation mode after the second step, without a loader."""

    def __init__(self, gradients: bool) -> None:
        super().__init__()
        self.model = Slow()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self._gradients, self._steps = gradients, 0

    def step(self, *batch: Any) -> Any:
        result = super().step(*batch)
        self._steps += 1
        if self._steps == 2:
            self.model.eval()
            with torch.set_grad_enabled(self._gradients):
                self.model(torch.ones(1, 3))
            self.model.train()
        return result


@pytest.mark.parametrize("gradients", [False, True])
def test_a_forward_pass_in_evaluation_mode_is_an_evaluation(tmp_path: Path, gradients: bool) -> None:
    written = trained(tmp_path, Evaluates(gradients))
    evaluations = [value for value in written.column("evaluation") if value > 0.9 * FORWARD_S * 1e9]
    assert len(evaluations) == (0 if gradients else 1)


def test_an_optimizer_of_parameters_without_a_module_is_not_timed(tmp_path: Path) -> None:
    training = Training()
    training.optimizer = torch.optim.SGD([*training.model.parameters(), torch.nn.Parameter(torch.ones(1))], lr=0.1)
    written = trained(tmp_path, training)
    assert not any(value > 0 for value in written.column("forward"))
    assert "pass the model" in missing(written)["forward"]


def test_a_second_optimizer_without_its_model_stops_the_timing(tmp_path: Path) -> None:
    """Half of the forward pass would be called Python outside torch."""
    training, other = Training(), torch.nn.Parameter(torch.ones(1))
    second = torch.optim.SGD([other], lr=0.1)

    class Both:
        def run(self, epochs: int) -> None:
            for _ in range(epochs):
                for batch in training.loader:
                    training.step(batch)
                    (other * 2).sum().backward()
                    second.step()

    written = trained(tmp_path, Both())
    assert not any(value > 0 for value in written.column("forward")[2:])
    assert "pass the model" in missing(written)["forward"]


def test_a_process_with_very_many_objects_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    assert Model in model_facts.classes_to_time(optimizer)
    monkeypatch.setattr(model_facts, "MAX_BLOCKS", 1)
    assert model_facts.classes_to_time(optimizer) == []


def test_after_a_compilation_only_compiled_modules_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monkeypatch.setattr(model_facts, "has_compiled", lambda: True)
    assert model_facts.classes_to_time(optimizer) == []
    compiled = torch.compile(model, backend="eager")
    assert model_facts.classes_to_time(optimizer) == [type(compiled)]
