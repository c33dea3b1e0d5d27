"""What holds a job up, from planted heartbeats: the culprit and its cause, and no alarm for healthy jobs."""

from pathlib import Path
from typing import Any

import pytest
from live.beats import MACHINE, NOW_S, beat, still, write

from tb_bottleneck.live import state as live_state
from tb_bottleneck.live.rank_states import RankState
from tb_bottleneck.live.state import LiveJobs, LiveState


def read(logdir: Path, process: str = "there", over: bool = True) -> list[LiveState]:
    return LiveJobs(str(logdir), clock=lambda: NOW_S, status=lambda _: process).read(over=over)


def one(logdir: Path, *beats: dict[str, Any], process: str = "there") -> LiveState:
    (state,) = read(write(logdir, *beats), process)
    return state


def test_a_healthy_job_has_no_alarm(tmp_path: Path) -> None:
    state = one(tmp_path, beat(0), beat(1, recent={"backward": 9.6e6}))
    assert (state.verdict.cause, state.verdict.severity) == ("alike", "none")
    assert "2 %" in state.verdict.headline


def test_a_rank_at_one_line_hangs_and_the_others_wait_for_it(tmp_path: Path) -> None:
    state = one(tmp_path, still(30, 0, "backward", 50), still(31, 1, "data", 41))
    verdict = state.verdict
    assert (verdict.cause, verdict.ranks, verdict.waiting, verdict.place) == ("hang", (1,), (0,), "train.py:41")
    assert verdict.headline == (
        "Rank 1 hangs at train.py:41 since 31.0 s, after step 1000. Rank 0 waits for it in the backward pass."
    )
    assert verdict.is_stall


def test_of_several_that_hang_the_one_with_the_earliest_step_is_named(tmp_path: Path) -> None:
    state = one(tmp_path, still(30, 0, "other", 50), still(31, 1, "other", 41, step=999))
    assert state.verdict.ranks == (1,)


def test_ranks_in_different_collectives(tmp_path: Path) -> None:
    beats = [still(30, rank, "collective", 50, world_size=3) for rank in (0, 1)]
    state = one(tmp_path, *beats, still(30, 2, "collective", 70, world_size=3))
    assert (state.verdict.cause, state.verdict.ranks) == ("collective_mismatch", (2,))


def test_all_ranks_in_one_collective(tmp_path: Path) -> None:
    state = one(tmp_path, *(still(30, rank, "collective", 50) for rank in (0, 1)))
    assert (state.verdict.cause, state.verdict.ranks) == ("collective_stuck", (0, 1))


def test_a_single_process_in_its_backward_pass_hangs(tmp_path: Path) -> None:
    assert one(tmp_path, still(30, 0, "backward", 50, world_size=1)).verdict.cause == "hang"


@pytest.mark.parametrize(
    ("process", "host", "cause"),
    [
        ("gone", "here", "killed"),
        ("stopped", "here", "stopped"),
        ("there", "here", "silent"),
        ("gone", MACHINE, "silent"),
    ],
)
def test_a_rank_without_heartbeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, process: str, host: str, cause: str
) -> None:
    monkeypatch.setattr(live_state, "machine_digest", lambda: "here")
    late = beat(1, unix_ns=(NOW_S - 25) * 1e9, step_unix_ns=(NOW_S - 25) * 1e9, host=host)
    state = one(tmp_path, still(24, 0, "collective", 50), late, process=process)
    assert (state.verdict.cause, state.verdict.ranks, state.verdict.waiting) == (cause, (1,), (0,))


def test_one_missed_heartbeat_is_no_alarm(tmp_path: Path) -> None:
    late = beat(1, unix_ns=(NOW_S - 9) * 1e9, step_unix_ns=(NOW_S - 9) * 1e9)
    assert one(tmp_path, beat(0), late).verdict.severity in ("none", "info")


def test_an_exception_is_named(tmp_path: Path) -> None:
    state = one(tmp_path, still(24, 0, "collective", 50), beat(1, state="failed", error="ValueError"))
    assert (state.verdict.cause, state.verdict.ranks) == ("failed", (1,))
    assert "ValueError" in state.verdict.headline


def test_a_rank_that_ends_before_the_others(tmp_path: Path) -> None:
    state = one(tmp_path, still(24, 0, "collective", 50), beat(1, state="ended"))
    assert (state.verdict.cause, state.verdict.ranks) == ("ended_early", (1,))


@pytest.mark.parametrize(
    "changes",
    [
        {"still_s": 2.0, "phase": "forward"},  # its thread moves: an evaluation
        {"still_s": 29.0, "phase": "checkpoint"},
        {"still_s": 29.0, "phase": "compilation"},
    ],
)
def test_a_busy_rank_is_no_alarm(tmp_path: Path, changes: dict[str, Any]) -> None:
    quiet = {"step_unix_ns": (NOW_S - 30) * 1e9} | changes
    state = one(tmp_path, beat(0, **quiet), still(30, 1, "collective", 50))
    assert (state.verdict.cause, state.verdict.severity, state.verdict.ranks) == ("busy", "info", (0,))
    assert state.job.ranks[1].state is RankState.WAITING


def test_a_long_first_step_is_a_start(tmp_path: Path) -> None:
    first = {
        "step": -1,
        "step_unix_ns": None,
        "began_unix_ns": (NOW_S - 200) * 1e9,
        "usual_step_ns": None,
        "recent": {},
    }
    beats = [beat(rank, still_s=100.0, **first) for rank in (0, 1)]
    for each in beats:
        each["recent"] = {}
    assert one(tmp_path, *beats).verdict.cause == "starting"


@pytest.mark.parametrize(
    ("extra", "cause"),
    [
        ({"loader_wait": 7e6}, "rank_input"),
        ({"forward": 11e6}, "rank_forward"),
        ({"optimizer": 8e6}, "rank_optimizer"),
        ({}, "rank_host"),
        ({"logging": 6e6}, "rank_interruption"),
    ],
)
def test_a_slow_rank_is_named_although_all_steps_are_equally_long(
    tmp_path: Path, extra: dict[str, float], cause: str
) -> None:
    """Its step is as long as that of the others, but it does not wait in the backward pass."""
    others = [beat(rank, 4, recent={"wall": 26e6, "backward": 16e6}) for rank in (0, 1, 3)]
    slow = beat(2, 4, recent={"wall": 26e6, "backward": 10e6} | extra)
    state = one(tmp_path, *others, slow)
    assert (state.verdict.cause, state.verdict.ranks) == (cause, (2,))
    assert "6.00 ms" in state.verdict.headline


def test_a_rank_with_rare_long_steps_has_interruptions(tmp_path: Path) -> None:
    state = one(tmp_path, beat(0, recent={"own_mean": 16e6}), beat(1))
    assert (state.verdict.cause, state.verdict.ranks) == ("rank_interruption", (0,))
    assert one(tmp_path / "rare", beat(0, recent={"own_mean": 11e6}), beat(1)).verdict.cause == "alike"


def test_the_line_of_a_slow_rank_is_the_one_that_the_others_do_not_have(tmp_path: Path) -> None:
    common = ["train.py", 50, "main", "backward", 30]
    slow = beat(
        1,
        recent={"wall": 26e6, "backward": 10e6},
        lines=[common, ["data.py", 7, "load", "other", 25], ["train.py", 49, "main", "forward", 5]],
    )
    other = beat(0, recent={"wall": 26e6, "backward": 16e6}, lines=[common, ["train.py", 49, "main", "forward", 30]])
    state = one(tmp_path, other, slow)
    assert state.verdict.place == "data.py:7"
    assert "data.py:7" in state.verdict.headline


def test_unequal_ranks_that_do_not_wait_for_each_other_are_no_straggler(tmp_path: Path) -> None:
    state = one(tmp_path, beat(0), beat(1, recent={"wall": 40e6, "forward": 25e6}))
    assert state.verdict.cause == "alike"


def test_a_throttled_gpu(tmp_path: Path) -> None:
    beats = [beat(rank, 4, device={"sm_clock": 1.7e9 if rank != 3 else 1.2e9}) for rank in range(4)]
    state = one(tmp_path, *beats)
    assert (state.verdict.cause, state.verdict.ranks) == ("rank_device", (3,))
    assert "71 %" in state.verdict.headline


def test_a_restarted_job_is_its_newest_start(tmp_path: Path) -> None:
    old = [still(500, rank, "collective", 50) for rank in (0, 1)]
    new = [beat(rank, restart=1, began_unix_ns=(NOW_S - 60) * 1e9) for rank in (0, 1)]
    state = one(tmp_path, *old, *new)
    assert state.verdict.cause == "alike"
    assert [rank.restarts for rank in state.job.ranks] == [1, 1]


def test_a_rank_without_monitor_is_missing_and_no_alarm(tmp_path: Path) -> None:
    state = one(tmp_path, beat(0, 3), beat(2, 3))
    assert (state.job.missing, state.verdict.severity) == ((1,), "none")


def test_ranks_that_cannot_be_compared_are_not_called_alike(tmp_path: Path) -> None:
    few = {"steps": 5}
    assert one(tmp_path / "few", beat(0, recent=few), beat(1, recent=few)).verdict.cause == "too_few"
    beats = [beat(0), beat(1)]
    for each in beats:
        del each["recent"]["backward"]
    verdict = one(tmp_path / "unseen", *beats).verdict
    assert verdict.cause == "exchange_unseen"
    assert "Cannot tell" in verdict.headline


def test_a_pause_like_earlier_ones_is_no_news(tmp_path: Path) -> None:
    """A checkpoint of ten seconds, as the one before."""
    quiet = {"step_unix_ns": (NOW_S - 10) * 1e9, "still_s": 2.0, "phase": "checkpoint", "longest_pause_ns": 10e9}
    assert one(tmp_path, beat(0, **quiet), beat(1, **quiet)).verdict.cause == "alike"


def test_two_jobs_in_one_logdir_stay_apart(tmp_path: Path) -> None:
    states = read(write(tmp_path, beat(0), beat(1), beat(0, job="other"), still(30, 1, "data", 41, job="other")))
    assert sorted(state.verdict.cause for state in states) == ["alike", "hang"]


def test_what_ended_long_ago_is_not_shown(tmp_path: Path) -> None:
    old = [beat(rank, state="ended", unix_ns=(NOW_S - 3000) * 1e9) for rank in (0, 1)]
    write(tmp_path, *old)
    assert read(tmp_path, over=False) == []
    (state,) = read(tmp_path)
    assert state.verdict.cause == "ended"
