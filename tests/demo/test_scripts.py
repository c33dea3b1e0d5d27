"""Every illness is a short script, and those that mean something on a CPU run there, ill and cured."""

import importlib
import importlib.util
from pathlib import Path

import pytest

from demo.pairs import COMPILER, CPU, PAIRS

DEMO = Path(__file__).parents[2] / "demo"
torch_is_here = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="training needs torch")


@pytest.mark.parametrize("name", [pair.name for pair in PAIRS.values() if not pair.sweep])
def test_a_script_is_short_and_tells_of_illness_and_cure(name: str) -> None:
    text = (DEMO / f"{name}.py").read_text()
    assert len(text.splitlines()) <= 80
    assert text.startswith(('"""The illness', '"""No illness'))
    assert "def train(cured: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:" in text


@pytest.mark.slow
@torch_is_here
@pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")  # more than cores
@pytest.mark.parametrize(
    ("name", "half"), [(pair.name, half) for pair in PAIRS.values() if pair.needs == CPU for half in pair.halves]
)
def test_it_trains_as_many_steps_as_asked_for(name: str, half: str) -> None:
    import torch

    threads = torch.get_num_threads()
    done = []
    pair = PAIRS[name]
    script = importlib.import_module(f"demo.{pair.script or name}")
    try:
        script.train(pair.halves[half], 2, lambda: done.append(1), torch.device("cpu"))
    finally:
        torch.set_num_threads(threads)
    assert len(done) == 2


def test_a_sweep_has_a_script_of_another_switch() -> None:
    swept = [pair for pair in PAIRS.values() if pair.sweep]
    assert {pair.script or pair.name for pair in swept} == {"loader_workers"}
    assert [workers for pair in swept for workers, pinned in pair.halves.values() if not pinned] == [0, 2, 4, 8]
    assert [workers for pair in swept for workers, pinned in pair.halves.values() if pinned] == [0, 2, 4, 8]


def test_the_others_say_what_they_need() -> None:
    assert {pair.needs for pair in PAIRS.values()} == {CPU, COMPILER, "a GPU", "two GPUs"}
