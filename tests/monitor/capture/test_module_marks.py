"""Modules are marked in recordings with their names in the model, and the training is not affected."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.modules import module as torch_module

from tb_bottleneck.drilldown.inspected_trace import load_inspected
from tb_bottleneck.drilldown.tree.selection import Selection, selected_tree
from tb_bottleneck.monitor.capture import module_marks
from tb_bottleneck.monitor.capture.module_marks import MarkingProfiler, ModuleMarks
from tb_bottleneck.monitor.guard import Guard
from tb_bottleneck.monitor.monitor import Monitor


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        if batch.shape[0] == 13:
            raise ValueError("thirteen")
        return self.down(torch.relu(self.up(batch)))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(8, 1)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            batch = batch + layer(batch)
        return self.head(batch)


def losses(model: nn.Module, steps: int, after_step: Any = lambda: None) -> list[float]:
    torch.manual_seed(7)
    optimizer, values = torch.optim.SGD(model.parameters(), lr=0.1), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 8)).square().mean()
        loss.backward()
        optimizer.step()
        values.append(loss.item())
        after_step()
    return values


def new_model() -> Net:
    torch.manual_seed(1)
    return Net()


def record(tmp_path: Path, run: Any, depth: int = 9, guard: Guard | None = None) -> list[dict[str, Any]]:
    """Returns the marks that a recording of `run()` has."""
    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    marking = MarkingProfiler(profiler, ModuleMarks(depth, guard or Guard()))
    marking.start()
    run()
    marking.stop()
    path = tmp_path / "marked.pt.trace.json"
    marking.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    return sorted(
        (event for event in events if str(event.get("name")).startswith(module_marks.PREFIX)),
        key=lambda event: float(event["ts"]),
    )


def names(events: list[dict[str, Any]]) -> list[str]:
    return [event["name"].removeprefix(module_marks.PREFIX) for event in events]


def hooks() -> int:
    return len(torch_module._global_forward_hooks) + len(torch_module._global_forward_pre_hooks)


def test_modules_have_their_names_in_the_model(tmp_path: Path) -> None:
    model = new_model()
    marks = record(tmp_path, lambda: model(torch.randn(4, 8)))
    assert names(marks) == [
        "Net", "layers.0", "layers.0.up", "layers.0.down", "layers.1", "layers.1.up", "layers.1.down", "head",
    ]  # fmt: skip


def test_the_depth_is_bounded(tmp_path: Path) -> None:
    model = new_model()
    assert names(record(tmp_path, lambda: model(torch.randn(4, 8)), depth=0)) == ["Net"]
    assert names(record(tmp_path, lambda: model(torch.randn(4, 8)), depth=2)) == ["Net", "layers.0", "layers.1", "head"]


def test_wrappers_are_not_part_of_the_names(tmp_path: Path) -> None:
    class Wrapper(nn.Module):
        def __init__(self, module: nn.Module) -> None:
            super().__init__()
            self.module = module

        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            return self.module(batch)

    wrapped = Wrapper(new_model())
    assert names(record(tmp_path, lambda: wrapped(torch.randn(4, 8)), depth=1)) == ["Wrapper", "Net", "head"]


def test_the_losses_are_the_same_bit_by_bit(tmp_path: Path) -> None:
    plain, marked = losses(new_model(), 5), []
    record(tmp_path, lambda: marked.extend(losses(new_model(), 5)))
    assert plain == marked


def test_nothing_remains_after_a_recording(tmp_path: Path) -> None:
    model, before = new_model(), hooks()
    during: list[int] = []
    record(tmp_path, lambda: during.append(hooks()))
    assert (hooks(), during) == (before, [before + 2])
    copies: list[bytes] = []
    record(tmp_path, lambda: (model(torch.randn(4, 8)), copies.append(pickle.dumps(model))))
    assert copies == [pickle.dumps(model)]


def test_an_error_in_a_module_closes_its_marks(tmp_path: Path) -> None:
    model = new_model()

    def run() -> None:
        with pytest.raises(ValueError, match="thirteen"):
            model(torch.randn(13, 8))
        model(torch.randn(4, 8))

    marks = record(tmp_path, run, depth=2)
    assert names(marks) == ["Net", "layers.0", "Net", "layers.0", "layers.1", "head"]
    ends = [float(event["ts"]) + float(event["dur"]) for event in marks]
    assert max(ends[:2]) <= float(marks[2]["ts"])


def test_a_recording_that_ends_in_a_module_closes_its_marks(tmp_path: Path) -> None:
    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    marking = MarkingProfiler(profiler, ModuleMarks(3, Guard()))

    class Ending(nn.Module):
        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            marking.stop()
            return batch

    marking.start()
    assert Ending()(torch.ones(1)).item() == 1
    assert hooks() == 0


def test_compiled_code_is_not_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_marks, "has_compiled", lambda: True)
    guard, model = Guard(), new_model()
    assert record(tmp_path, lambda: model(torch.randn(4, 8)), guard=guard) == []
    assert [note.code for note in guard.take_notes()] == ["module_marks_off"]


def test_an_error_of_the_monitor_does_not_reach_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: ModuleMarks, model: Any) -> str:
        raise RuntimeError("of the monitor")

    monkeypatch.setattr(ModuleMarks, "_add", fail)
    guard, plain, marked = Guard(), losses(new_model(), 2), []
    record(tmp_path, lambda: marked.extend(losses(new_model(), 2)), guard=guard)
    assert marked == plain
    assert not guard.is_on(module_marks.SIGNAL)


def test_the_tree_has_the_names_for_the_forward_and_the_backward_pass(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path, module_depth=2)
    monitor.start()
    losses(new_model(), 45)
    monitor.stop()
    (path,) = tmp_path.rglob("*.pt.trace.json*")
    tree = selected_tree(load_inspected(str(path)), Selection("module"))
    assert {"Net", "layers.0", "layers.1", "head"} <= {
        name for name, kind in zip(tree.name, tree.kind, strict=True) if kind == "module"
    }
    layer = tree.name.index("layers.0")
    assert tree.name[tree.parent[layer]] == "Net"
    assert 0 < tree.columns["backward"][layer] < tree.exclusive[layer]
    assert hooks() == 0
