"""A monitor around real trainings on the CPU: its output, and that it never disturbs the training."""

import math
import statistics
from pathlib import Path

import pytest
import torch
from monitor.quick_monitor import quick
from monitor.training import BATCH, STEPS, Numbers, Training
from monitor.written import read
from torch.utils.data import DataLoader

pytestmark = pytest.mark.usefixtures("torch_is_left_as_it_was")


def test_an_ordinary_loop_needs_one_line(tmp_path: Path) -> None:
    with quick(tmp_path):
        Training().run(epochs=3)
    written = read(tmp_path)
    assert written.numbers == list(range(3 * STEPS))
    assert written.column("samples") == [BATCH] * 3 * STEPS
    for name in ("loader_wait", "backward", "optimizer"):
        assert all(value > 0 for value in written.column(name)), name
    assert written.column("transfer") == []
    assert "transfer" in {one.name for one in written.contexts[-1].unsupported}
    assert [packet.sequence for packet in written.packets] == list(range(len(written.packets)))


def test_times_of_a_step_fit_into_it(tmp_path: Path) -> None:
    training = Training()
    with quick(tmp_path, model=training.model):
        training.run(epochs=2)
    written = read(tmp_path)
    walls = [wall for packet in written.packets for wall in packet.steps.wall_ns]
    parts = zip(*(written.column(name) for name in ("loader_wait", "forward", "backward", "optimizer")), strict=True)
    assert all(sum(row) <= wall for row, wall in zip(parts, walls, strict=True))
    ends = [end for packet in written.packets for end in packet.steps.end_unix_ns]
    gaps = [abs(after - before - wall) for before, after, wall in zip(ends, ends[1:], walls[1:], strict=False)]
    # The median, because a busy machine can interrupt the monitor between its two clocks.
    assert statistics.median(gaps) < 5e6


def test_scalars_for_the_stock_tab_have_steps_that_only_grow(tmp_path: Path) -> None:
    with quick(tmp_path):
        Training().run(epochs=20)
    scalars = read(tmp_path).scalars
    assert {"bottleneck/step_time_ms", "bottleneck/loader_share", "bottleneck/samples_per_second"} <= set(scalars)
    for points in scalars.values():
        steps = [step for step, _ in points]
        assert steps == sorted(set(steps))
        assert all(math.isfinite(value) for _, value in points)


def test_facts_are_written(tmp_path: Path) -> None:
    with quick(tmp_path):
        Training().run()
    facts = read(tmp_path).facts
    assert (facts["workers"], facts["batch_size"], facts["pin_memory"]) == (0, BATCH, False)
    assert (facts["optimizer"], facts["matmul_precision"]) == ("AdamW", torch.get_float32_matmul_precision())
    assert dict(facts["parameters_by_dtype"]) == {"float32": 4}
    assert facts["torch"] == torch.__version__


def test_its_own_cost_is_one_of_the_series(tmp_path: Path) -> None:
    with quick(tmp_path):
        Training().run(epochs=10)
    cost = read(tmp_path).series("monitor_cost")
    assert cost
    assert all(0 < value < 2 for value in cost)


def test_steps_by_hand_without_an_optimizer(tmp_path: Path) -> None:
    with quick(tmp_path) as monitor:
        for _ in range(5):
            torch.ones(3).sum()
            monitor.step(samples=7)
    written = read(tmp_path)
    assert written.numbers == [0, 1, 2, 3], "the first has no beginning"
    assert written.column("samples") == [7] * 4


def test_a_loop_that_is_left_by_a_break_keeps_its_last_step(tmp_path: Path) -> None:
    training = Training()
    with quick(tmp_path):
        for index, batch in enumerate(training.loader):
            training.step(batch)
            if index == 4:
                break
    written = read(tmp_path)
    assert written.numbers == [0, 1, 2, 3, 4]
    assert written.notes[-1] == "ended"


def test_evaluation_inside_is_no_training(tmp_path: Path) -> None:
    training, evaluation = Training(), Training()
    with quick(tmp_path):
        for _ in range(2):
            training.run()
            with torch.no_grad():
                for batch in evaluation.loader:
                    evaluation.model(batch[0])
    written = read(tmp_path)
    assert len(written.numbers) == 2 * STEPS
    assert written.column("samples") == [BATCH] * 2 * STEPS
    assert [value > 0 for value in written.column("evaluation")].count(True) == 1


def test_evaluation_with_gradients_on_spoils_neither_samples_nor_facts(tmp_path: Path) -> None:
    """Its iterator has the id of the training's iterator, which was deleted."""
    training = Training()
    evaluation = DataLoader(Numbers(), batch_size=1)
    with quick(tmp_path):
        for _ in range(4):
            training.run()
            for batch in evaluation:
                training.model(batch[0])
    written = read(tmp_path)
    assert written.column("samples") == [BATCH] * 4 * STEPS
    assert [value > 0 for value in written.column("evaluation")].count(True) >= 3
    assert written.facts["batch_size"] == BATCH


@pytest.mark.parametrize("every_s", [0.0, -1.0, math.nan, math.inf])
def test_packets_come_neither_all_the_time_nor_never(tmp_path: Path, every_s: float) -> None:
    """An interval of 0 seconds used a whole core."""
    with quick(tmp_path, every_s=every_s) as monitor:
        pump = monitor._session._writer  # type: ignore[union-attr]
        assert 0.05 <= pump._every_s <= 3600
        Training().run()
    assert len(read(tmp_path).numbers) == STEPS


def test_it_writes_where_it_began_when_the_training_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training that changes its directory, as with Hydra, lost its traces."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with quick(Path("runs"), captures=1):
        monkeypatch.chdir(tmp_path / "elsewhere")
        Training().run(epochs=6)
    assert len(list((tmp_path / "runs").rglob("*.pt.trace.json.gz"))) == 1
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_what_never_came_is_missing_with_a_reason(tmp_path: Path) -> None:
    """A model called through another wrapper, gradients without a backward pass, no loader: each signal was missing
    without a reason."""
    weight, model = torch.nn.Parameter(torch.ones(3)), Training().model
    optimizer = torch.optim.SGD([weight])
    with quick(tmp_path, model=model):
        for _ in range(30):
            (weight.grad,) = torch.autograd.grad((weight**2).sum(), [weight])
            optimizer.step()
    written = read(tmp_path)
    assert len(written.numbers) == 30
    because = {one.name: one.because for one in written.contexts[-1].unsupported}
    assert "was not called" in because["forward"]
    assert "computed in another way" in because["backward"]
    assert "DataLoader" in because["loader_wait"]


def test_importing_the_package_imports_neither_torch_nor_tensorboard() -> None:
    import subprocess
    import sys

    code = "import sys, tb_bottleneck; assert not {'torch', 'tensorboard'} & set(sys.modules); tb_bottleneck.Monitor"
    subprocess.run([sys.executable, "-c", code], check=True)


WITHOUT_OTHERS = """
import sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("google", "tensorboard", "rich", "msgspec", "werkzeug"):
            raise ImportError(f"{name} is not installed here")

sys.meta_path.insert(0, Refused())
import torch
from tb_bottleneck import Monitor

model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
with Monitor(sys.argv[1]):
    for _ in range(60):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
"""


def test_a_training_needs_neither_tensorboard_nor_protobuf_nor_rich(tmp_path: Path) -> None:
    """A training may have other versions of them, or none."""
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_OTHERS, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert "the monitor continues without" not in done.stderr
    (directory,) = (tmp_path / "tb_bottleneck").iterdir()
    written = read(directory)
    assert written.numbers == list(range(60))
    assert written.facts["torch"]
    assert list(directory.glob("*.pt.trace.json.gz"))
