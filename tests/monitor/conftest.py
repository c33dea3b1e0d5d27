"""Fixtures: a fake machine, and checks of tests that monitor real trainings."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from monitor.machine import Machine
from monitor.training import Model
from torch.optim import optimizer as torch_optimizer
from torch.utils.data import DataLoader
from torch.utils.data import dataloader as torch_dataloader

from tb_bottleneck.monitor import monitor as module

PATCHED = {
    "DataLoader.__iter__": lambda: DataLoader.__iter__,
    "iterator.__next__": lambda: torch_dataloader._BaseDataLoaderIter.__next__,
    "backward": lambda: torch.autograd.backward,
    "profile": lambda: dict(vars(torch.autograd.profiler.profile)),
    "Tensor": lambda: {name: vars(torch.Tensor).get(name) for name in ("to", "cuda", "cpu", "item", "__bool__")},
    "Model": lambda: dict(vars(Model)),
    "hooks before": lambda: dict(torch_optimizer._global_optimizer_pre_hooks),
    "hooks after": lambda: dict(torch_optimizer._global_optimizer_post_hooks),
}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def torch_is_left_as_it_was() -> Iterator[None]:
    before = {name: look() for name, look in PATCHED.items()}
    yield
    assert {name: look() for name, look in PATCHED.items()} == before
    assert module._active is None


@pytest.fixture
def whole_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that a busy machine makes slow do not shorten a recording."""
    from tb_bottleneck.monitor.capture import trace_capture

    monkeypatch.setattr(trace_capture, "SLOWED_NS", 1e18)
