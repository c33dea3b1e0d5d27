"""Run directories: their names, the live ones, and requests for traces."""

import os
import re
import time
from pathlib import Path

import pytest

from tb_bottleneck.monitor.writer.run_directory import (
    CaptureRequests,
    ProcessRank,
    live_directories,
    new_directory,
    process_rank,
    request_capture,
    trace_directory,
)

TORCHRUN = {"RANK": "3", "WORLD_SIZE": "8", "MASTER_ADDR": "node17.example.org", "MASTER_PORT": "29500"}


def test_alone_there_is_rank_0_and_no_job() -> None:
    assert process_rank({}) == ProcessRank(0, 1, "")
    assert process_rank({"RANK": "0", "WORLD_SIZE": "1"}) == ProcessRank(0, 1, "")


def test_ranks_of_a_job_share_its_mark_and_another_job_has_another() -> None:
    first, second = process_rank(TORCHRUN), process_rank({**TORCHRUN, "RANK": "0"})
    assert (first.rank, first.world_size) == (3, 8)
    assert first.job == second.job
    assert process_rank({**TORCHRUN, "MASTER_PORT": "29501"}).job != first.job


def test_without_a_launcher_the_process_group_tells_the_rank() -> None:
    """As with torch.multiprocessing.spawn; the ranks were taken for trainings of their own."""
    first, second = (process_rank({}, (rank, 2)) for rank in range(2))
    assert (first.rank, second.rank, second.world_size) == (0, 1, 2)
    assert first.job == second.job != ""
    spawned = {"MASTER_ADDR": "localhost", "MASTER_PORT": "12355"}
    launched = process_rank({**spawned, "RANK": "1", "WORLD_SIZE": "2"})
    assert process_rank(spawned, (1, 2)).job not in ("", launched.job), "another program of this port is another job"
    elsewhere = {"MASTER_ADDR": "node17", "MASTER_PORT": "12355"}
    assert process_rank(elsewhere, (1, 2)).job == process_rank({**elsewhere, "RANK": "0", "WORLD_SIZE": "2"}).job
    assert process_rank(TORCHRUN, (0, 2)).rank == 3, "the launcher knows better"
    assert process_rank({}, (0, 1)) == ProcessRank(0, 1, "")


@pytest.mark.parametrize("rank", ["", "-1", "x", "8", "٣", "99999999999"])
def test_a_rank_that_is_none_is_rank_0(rank: str) -> None:
    assert process_rank({**TORCHRUN, "RANK": rank}).rank == 0


def test_the_name_contains_start_rank_and_process_but_no_user(tmp_path: Path) -> None:
    alone = new_directory(tmp_path, ProcessRank(0, 1, ""))
    assert alone.parent == tmp_path / "tb_bottleneck"
    assert re.fullmatch(rf"\d{{8}}-\d{{6}}_rank0_{os.getpid()}", alone.name)
    assert "node17" not in new_directory(tmp_path, process_rank(TORCHRUN)).name


def test_two_processes_of_one_name_get_a_directory_each(tmp_path: Path) -> None:
    """Containers on two machines with a shared disk: both are process 7 and start in the same second. The second one
    was not monitored, because its event file existed."""
    directories = [new_directory(tmp_path, ProcessRank(0, 1, ""), now=1_790_000_000.0) for _ in range(3)]
    assert len(set(directories)) == 3
    assert [path.name for path in directories] == sorted(path.name for path in directories)
    for path in directories:
        (path / "events.out.tfevents.1").touch()
    assert set(live_directories(tmp_path)) == set(directories), "all have names that are looked for"


def test_it_stays_where_it_is_when_the_training_goes_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hydra, for example, changes the directory after the monitor's start; traces were lost."""
    monkeypatch.chdir(tmp_path)
    assert new_directory(Path("runs"), ProcessRank(0, 1, "")).is_absolute()


def test_all_ranks_put_their_traces_into_the_newest_directory_of_rank_0(tmp_path: Path) -> None:
    folder = tmp_path / "tb_bottleneck"
    for name in ("20260101-000000_abcdef_rank0_1", "20260102-000000_abcdef_rank0_2", "20260103-000000_123456_rank0_3"):
        (folder / name).mkdir(parents=True)
    own = folder / "20260102-000001_abcdef_rank3_9"
    assert trace_directory(own, ProcessRank(3, 8, "abcdef")) == folder / "20260102-000000_abcdef_rank0_2"
    assert trace_directory(own, ProcessRank(3, 8, "fedcba")) == own
    assert trace_directory(own, ProcessRank(0, 1, "")) == own


def test_living_are_those_that_wrote_lately(tmp_path: Path) -> None:
    alive, dead = (new_directory(tmp_path / name, ProcessRank(0, 1, "")) for name in ("a/b", "c"))
    for directory in (alive, dead):
        (directory / "events.out.tfevents.1").touch()
    os.utime(dead / "events.out.tfevents.1", (time.time() - 500,) * 2)
    (tmp_path / "tb_bottleneck" / "somebody-elses").mkdir(parents=True)
    assert live_directories(tmp_path) == [alive]
    assert live_directories(alive.parent) == [alive]


def test_a_request_is_taken_once(tmp_path: Path) -> None:
    requests = CaptureRequests(tmp_path)
    assert not requests.take()
    assert request_capture(tmp_path)
    assert not request_capture(tmp_path), "one lies there already"
    assert requests.take()
    assert not requests.take()
    assert list(tmp_path.iterdir()) == []


def test_each_kind_of_request_with_a_step_is_taken_alone(tmp_path: Path) -> None:
    requests = CaptureRequests(tmp_path)
    request_capture(tmp_path, 7, "machine")
    request_capture(tmp_path, 8)
    assert [requests.take_step("machine"), requests.take_step("machine"), requests.take_step()] == [7, None, 8]


@pytest.mark.parametrize("kind", ["huge", "link", "dangling", "directory", "fifo", "unreadable"])
def test_only_that_the_request_is_there_counts(tmp_path: Path, kind: str) -> None:
    """Any user with write access could create it: it is not opened, not followed, and counts once."""
    path, elsewhere = tmp_path / "capture.request", tmp_path / "precious"
    elsewhere.write_text("precious")
    if kind == "huge":
        path.touch()
        os.truncate(path, 1 << 40)
    elif kind == "link":
        path.symlink_to(elsewhere)
    elif kind == "dangling":
        path.symlink_to("/nowhere")
    elif kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)  # opening it would hang
    else:
        path.touch(mode=0)
    requests = CaptureRequests(tmp_path)
    assert [requests.take() for _ in range(3)] == [True, False, False]
    assert elsewhere.read_text() == "precious"


def test_a_request_that_cannot_be_taken_away_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_: object) -> None:
        raise PermissionError

    request_capture(tmp_path)
    monkeypatch.setattr(os, "unlink", refuses)
    requests = CaptureRequests(tmp_path)
    assert [requests.take() for _ in range(3)] == [True, False, False]


def test_asking_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "capture.request").symlink_to(tmp_path / "elsewhere")
    assert not request_capture(tmp_path)
    assert not (tmp_path / "elsewhere").exists()
