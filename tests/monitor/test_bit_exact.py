"""A monitored training has the losses of the same training without a monitor, bit for bit."""

import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from monitor.exact_trainings import KINDS, SLOW_KINDS, Kind
from monitor.written import read

from tb_bottleneck import Monitor

STEPS = 500
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small tensors gain nothing from more threads, and sums of several threads may differ."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    gc.freeze()  # the monitor searches the tracked objects for models: those of other tests take most of the time
    yield
    torch.set_num_threads(before)


def losses(kind: Kind) -> list[float]:
    torch.manual_seed(7)
    return list(kind(STEPS))


losses_alone = cache(losses)


def compare(kind: Kind, logdir: Path, **options: Any) -> None:
    alone = losses_alone(kind)
    with Monitor(logdir, every_s=0.1, **options):
        monitored = losses(kind)
    assert len(alone) >= STEPS
    assert len(set(alone)) > STEPS // 2, "the training does nothing"
    assert monitored == alone


def test_there_are_twenty_kinds() -> None:
    assert len(KINDS) >= 20


@pytest.mark.parametrize("kind", KINDS)
def test_losses_are_bit_exact(tmp_path: Path, kind: str) -> None:
    compare(KINDS[kind], tmp_path, captures=0)
    if kind != "without_optimizer":
        assert len(read(tmp_path).numbers) > STEPS // 5


def test_losses_are_bit_exact_while_traces_are_recorded(tmp_path: Path) -> None:
    compare(KINDS["shuffled"], tmp_path, captures=1)
    assert list(tmp_path.rglob("*.pt.trace.json.gz"))


@pytest.mark.nightly
@pytest.mark.parametrize("kind", SLOW_KINDS)
def test_losses_of_slow_kinds_are_bit_exact(tmp_path: Path, kind: str) -> None:
    compare(SLOW_KINDS[kind], tmp_path, captures=1)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_losses_of_every_kind_are_bit_exact_while_traces_are_recorded(tmp_path: Path, kind: str) -> None:
    compare(KINDS[kind], tmp_path, captures=1)


@pytest.mark.parametrize("framework", ["lightning", "huggingface"])
def test_losses_of_a_framework_are_bit_exact(tmp_path: Path, framework: str) -> None:
    with_callback, without = (_framework_losses(tmp_path / name, framework, name == "with") for name in ("with", "not"))
    assert with_callback == without
    assert len(set(without)) > 1


def _framework_losses(folder: Path, framework: str, monitored: bool) -> list[float]:
    torch.manual_seed(7)
    module = pytest.importorskip(f"monitor.{framework}_losses")
    return list(module.losses(folder, monitored))
