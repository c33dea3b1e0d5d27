"""Turns: one program trains at a time, and what it waits for its turn belongs to no step."""

import socket
from itertools import pairwise
from pathlib import Path

import pytest

from tb_bottleneck.diagnosis.telemetry import TelemetryReader, read_all
from tb_bottleneck.trial.block_result import BlockFailed, BlockResult
from tb_bottleneck.trial.block_runner import Blocks
from tb_bottleneck.trial.changes import Change
from tb_bottleneck.trial.turns import possible_turns

VARIANTS = (Change(), Change(environment=(("OTHER", "1"),)))


@pytest.mark.parametrize(
    ("measured_s", "step_s", "workers", "turns"),
    [
        (2.0, 0.01, 0, 16),
        (2.0, 0.03, 4, 8),  # a third of each turn is not measured
        (4.0, 0.2, 0, 20),
        (4.0, 0.2, 8, 1),
        (16.0, 5.0, 0, 2),
        (0.1, 0.01, 0, 1),
        (60.0, 0.01, 0, 64),
    ],
)
def test_a_block_has_as_many_turns_as_its_steps_and_workers_allow(
    measured_s: float, step_s: float, workers: int, turns: int
) -> None:
    assert possible_turns(measured_s, step_s, workers) == turns


PROGRAM = """
import os, time, torch

weights = torch.nn.Parameter(torch.ones(8))
optimizer = torch.optim.SGD([weights], 0.1)
file = open("steps.txt", "a", buffering=1)
for _ in range(100_000):
    began = time.monotonic()
    time.sleep(0.01)
    print(os.getpid(), began, time.monotonic(), file=file)
    weights.square().sum().backward()
    optimizer.step()
"""


def test_one_program_trains_at_a_time_and_the_wait_belongs_to_no_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(PROGRAM)
    first, second = Blocks(("train.py",), measure_s=1.0, folder=tmp_path).run(VARIANTS)
    assert isinstance(first, BlockResult)
    assert isinstance(second, BlockResult)
    rows = [line.split() for line in (tmp_path / "steps.txt").read_text().splitlines()]
    steps = sorted((float(began), float(end), process) for process, began, end in rows)
    assert len({process for _, _, process in steps}) == 2
    assert all(end <= began for (_, end, one), (began, _, other) in pairwise(steps) if one != other)
    switches = sum(one[2] != other[2] for one, other in pairwise(steps))
    assert switches >= 8, "A B B A …: a switch for each of eight turns"
    for block in (first, second):
        assert 10e6 < block.step_ns < 20e6
        assert block.steps >= 40
        (path,) = block.run.glob("tb_bottleneck/*/events.out.tfevents.*")
        reader = TelemetryReader(str(path))
        assert read_all(reader) is None
        walls = reader.telemetry.steps.column("wall").mean
        long = int((walls[5:] > 100e6).sum())  # on a busy machine, a step may take so long
        assert long < switches // 4, "the wait of a turn of 125 ms is in no row"


PORT = """
import socket, torch

listener = socket.socket()
listener.bind(("127.0.0.1", PORT))
weights = torch.nn.Parameter(torch.ones(8))
optimizer = torch.optim.SGD([weights], 0.1)
for _ in range(100_000):
    weights.square().sum().backward()
    optimizer.step()
"""


@pytest.mark.nightly
def test_programs_that_cannot_run_at_the_same_time_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "train.py").write_text(PORT.replace("PORT", str(port)))
    said: list[str] = []
    blocks = Blocks(("train.py",), measure_s=0.2, folder=tmp_path, told=said.append)
    results = blocks.run(VARIANTS)
    assert all(isinstance(result, BlockResult) for result in results), results
    assert not blocks.in_turns
    assert len(said) == 1
    assert "Address already in use" in said[0]


EVALUATION = """
import time, torch

weights = torch.nn.Parameter(torch.ones(8))
optimizer = torch.optim.SGD([weights], 0.1)
for step in range(100_000):
    time.sleep(600 if step == 200 else 0.01)
    weights.square().sum().backward()
    optimizer.step()
"""


@pytest.mark.nightly
def test_a_program_that_makes_no_more_steps_ends_with_what_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in an evaluation of minutes."""
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(EVALUATION)
    results = Blocks(("train.py",), measure_s=0.5, folder=tmp_path).run(VARIANTS)
    for result in results:
        assert isinstance(result, BlockResult), result
        assert 10e6 < result.step_ns < 16e6


@pytest.mark.nightly
def test_a_program_that_fails_by_itself_is_a_failure_also_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(f"import os\nassert 'OTHER' not in os.environ, 'wrong'\n{PROGRAM}")
    blocks = Blocks(("train.py",), measure_s=0.2, folder=tmp_path)
    before, changed = blocks.run(VARIANTS)
    assert isinstance(before, BlockResult)
    assert isinstance(changed, BlockFailed)
    assert "wrong" in str(changed)
    assert blocks.in_turns, "it does not fail because of the other"
