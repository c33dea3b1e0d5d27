"""The heartbeat file: bounded, complete, and about the training thread."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tb_bottleneck.live.heartbeats import Heartbeats
from tb_bottleneck.monitor.samplers.sampler import Reading
from tb_bottleneck.monitor.steps.row_queue import StepRow
from tb_bottleneck.monitor.steps.step_clock import StepClock
from tb_bottleneck.monitor.writer import heartbeat
from tb_bottleneck.monitor.writer.heartbeat import MAX_BUCKETS, MAX_BYTES, Heartbeat, History
from tb_bottleneck.monitor.writer.run_directory import ProcessRank, process_rank
from tb_bottleneck.monitor.writer.stall_stacks import StallStacks

MS = 1_000_000
RANK = ProcessRank(1, 2, "abc123", "def456", 3)


class Clock:
    """A clock that the test sets, in s."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def row(number: int, ms: float = 20.0, **figures: float) -> StepRow:
    return StepRow(number, number * 20 * MS, ms * MS, figures)


def content(directory: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((directory / "heartbeat.json").read_text())
    return result


def test_it_says_where_the_training_is_and_a_reader_understands_it(tmp_path: Path) -> None:
    steps = StepClock(lambda _: None)
    beat = Heartbeat(tmp_path, RANK, steps)
    rows = [row(number, loader_wait=2.0 * MS, backward=10.0 * MS) for number in range(50)]
    steps.steps = 50
    beat.add(rows, [Reading("sm_clock", 1.5e9, "GPU-1"), Reading("disk_read", 3.0, "host")])
    beat.write("running")
    written = content(tmp_path)
    assert (written["rank"], written["world_size"], written["job"], written["restart"]) == (1, 2, "def456", 3)
    assert (written["step"], written["usual_step_ns"]) == (49, 20 * MS)
    times = {"loader_wait": 2 * MS, "backward": 10 * MS, "wall": 20 * MS, "own": 10 * MS, "own_mean": 10 * MS}
    assert written["recent"] == times | {"steps": 50}
    assert written["device"] == {"sm_clock": 1.5e9}
    assert [each[1:] for each in written["history"]] == [[50, 20 * MS, 2 * MS, 8 * MS, 1_500_000_000]]
    (read,) = Heartbeats(str(tmp_path)).read()
    assert read.beat.step == 49


def test_it_is_written_at_most_every_five_seconds(tmp_path: Path) -> None:
    now = Clock()
    beat = Heartbeat(tmp_path, RANK, StepClock(lambda _: None), StallStacks(clock=now), now)
    written = []
    for _ in range(21):
        beat.beat()
        written.append(content(tmp_path)["unix_ns"])
        now.now += 1.0
        time.sleep(0.002)
    assert len(set(written)) == 5


def test_a_thread_that_stays_at_one_line_is_still_and_one_that_moves_is_not(tmp_path: Path) -> None:
    stop = threading.Event()
    lines = [0]

    def training() -> None:
        while not stop.is_set():
            lines[0] += 1
            stop.wait(0.02)

    def hanging() -> None:
        stop.wait()

    now = Clock()
    threads = [threading.Thread(target=work) for work in (hanging, training)]
    for thread in threads:
        thread.start()
    try:
        still, moving = StallStacks(clock=now), StallStacks(clock=now)
        seen = set()
        for _ in range(40):
            still.look(threads[0].ident)
            moving.look(threads[1].ident)
            seen.add(moving.still_s)
            now.now += 1.0
            time.sleep(0.007)
        assert still.still_s == 40
        assert still.where is not None
        assert still.where[0].endswith("test_heartbeat.py")
        stacks = still.all_threads(threads[0].ident)
        assert stacks[0]["training"]
        assert any(name == "hanging" for _, _, name in stacks[0]["frames"])  # type: ignore[attr-defined]
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_finished_step_is_a_move(tmp_path: Path) -> None:
    now, steps = Clock(), StepClock(lambda _: None)
    beat = Heartbeat(tmp_path, RANK, steps, StallStacks(clock=now), now)
    for _ in range(20):
        beat.beat()
        now.now += 1.0
        steps.steps += 1
    assert content(tmp_path)["still_s"] <= 1.0
    assert content(tmp_path)["stacks"] == []


@pytest.mark.parametrize(
    ("file", "phase"),
    [
        ("torch/utils/data/dataloader.py", "data"),
        ("torch/distributed/distributed_c10d.py", "collective"),
        ("torch/autograd/__init__.py", "backward"),
        ("torch/optim/adam.py", "optimizer"),
        ("torch/serialization.py", "checkpoint"),
        ("torch/nn/modules/module.py", "forward"),
        ("train.py", "other"),
    ],
)
def test_the_phase_follows_from_the_files_of_torch(file: str, phase: str) -> None:
    from tb_bottleneck.monitor.writer.stall_stacks import _phase_of

    assert _phase_of([("threading.py", 1, "wait"), (file, 2, "f"), ("train.py", 3, "main")]) == phase


def test_the_history_covers_the_whole_run_in_a_bounded_number_of_rows() -> None:
    history = History()
    for number in range(10_000):
        history.add(1000.0 + 5 * number, [row(number, 20.0 if number < 5_000 else 40.0)], [])
    rows = history.rows()
    assert MAX_BUCKETS / 2 <= len(rows) <= MAX_BUCKETS
    assert sum(each[1] or 0 for each in rows) == 10_000
    assert (rows[0][0], rows[0][2], rows[-1][2]) == (1000.0, 20 * MS, 40 * MS)


def test_the_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = [("f" * 120, 1, "g" * 120)] * 24
    stacks = StallStacks()
    monkeypatch.setattr(heartbeat, "STILL_S", -1.0)
    monkeypatch.setattr(
        stacks, "all_threads", lambda _: [{"thread": "t", "training": False, "frames": frames} for _ in range(16)]
    )
    beat = Heartbeat(tmp_path, RANK, StepClock(lambda _: None), stacks)
    for number in range(3_000):
        beat.add([row(number)], [])
    beat.write("running")
    assert 5_000 < (tmp_path / "heartbeat.json").stat().st_size <= MAX_BYTES


def test_a_full_disk_costs_one_heartbeat_only(tmp_path: Path) -> None:
    now = Clock()
    beat = Heartbeat(tmp_path / "gone", RANK, StepClock(lambda _: None), StallStacks(clock=now), now)
    beat.beat()
    (tmp_path / "gone").mkdir()
    now.now += 6.0
    beat.beat()
    assert content(tmp_path / "gone")["state"] == "running"


@pytest.mark.parametrize(
    "environment",
    [
        {"RANK": "3", "WORLD_SIZE": "8"},
        {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8"},
        {"PMI_RANK": "3", "PMI_SIZE": "8"},
        {"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_STEP_ID": "0"},
        {"RANK": "3", "WORLD_SIZE": "8", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"},
    ],
)
def test_launchers(environment: dict[str, str]) -> None:
    assert (process_rank(environment).rank, process_rank(environment).world_size) == (3, 8)


def test_a_batch_script_of_slurm_is_no_rank() -> None:
    assert process_rank({"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "5"}).world_size == 1


def test_a_restart_is_the_same_run_and_another_job() -> None:
    first = {"RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "x", "TORCHELASTIC_RESTART_COUNT": "0"}
    one, two = process_rank(first), process_rank({**first, "TORCHELASTIC_RESTART_COUNT": "1"})
    assert (one.run, one.restart, two.run, two.restart) == (two.run, 0, one.run, 1)
    assert one.job != two.job
