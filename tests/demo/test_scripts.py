"""Every problem is a short script, and those for a CPU run there, slow and fixed."""

import importlib
import importlib.util
from pathlib import Path

import pytest

from demo.pairs import COMPILER, CPU, PAIRS

PROBLEMS = Path(__file__).parents[2] / "demo" / "problems"
torch_is_here = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="training needs torch")


@pytest.mark.parametrize("name", [pair.name for pair in PAIRS.values() if not pair.sweep])
def test_a_script_is_short_and_describes_problem_and_fix(name: str) -> None:
    text = (PROBLEMS / f"{name}.py").read_text()
    assert len(text.splitlines()) <= 80
    assert text.startswith('"""No problem: ') or (text.startswith('"""Problem: ') and "\n\nFix: " in text)
    assert "def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:" in text


SLOW = {"synced_portions", "crowded_processes", "activation_heavy", "oversubscribed_threads"}
"""Pairs that train for seconds."""


@torch_is_here
@pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")  # more than cores
@pytest.mark.parametrize(
    ("name", "variant"),
    [
        pytest.param(pair.name, variant, marks=[pytest.mark.nightly] if pair.name in SLOW else [])
        for pair in PAIRS.values()
        if pair.needs == CPU
        for variant in pair.variants
    ],
)
def test_it_trains_the_requested_number_of_steps(name: str, variant: str) -> None:
    import torch

    threads = torch.get_num_threads()
    done = []
    pair = PAIRS[name]
    script = importlib.import_module(f"demo.problems.{pair.script or name}")
    try:
        script.train(pair.variants[variant], 2, lambda: done.append(1), torch.device("cpu"))
    finally:
        torch.set_num_threads(threads)
    assert len(done) == 2


def test_a_sweep_has_a_script_of_another_switch() -> None:
    swept = [pair for pair in PAIRS.values() if pair.sweep]
    assert {pair.script or pair.name for pair in swept} == {"loader_workers"}
    assert [workers for pair in swept for workers, pinned in pair.variants.values() if not pinned] == [0, 2, 4, 8]
    assert [workers for pair in swept for workers, pinned in pair.variants.values() if pinned] == [0, 2, 4, 8]


def test_the_other_scripts_report_their_requirements() -> None:
    assert {pair.needs for pair in PAIRS.values()} == {CPU, COMPILER, "a GPU", "two GPUs"}
