"""Heartbeats are untrusted files: what cannot be used costs only itself."""

import json
import time
from pathlib import Path

import pytest
from live.beats import NOW_S, beat, write

from tb_bottleneck.live.heartbeats import MAX_BYTES, Heartbeats
from tb_bottleneck.live.state import LiveJobs


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "null",
        "[" * 100_000,
        json.dumps(beat() | {"schema": 2}),
        json.dumps(beat() | {"rank": -1}),
        json.dumps(beat() | {"rank": 5}),
        json.dumps(beat() | {"world_size": 10**9}),
        json.dumps(beat() | {"pid": 10**30}),
        json.dumps(beat() | {"pid": -1}),
        json.dumps(beat() | {"unix_ns": 1e300}),
        json.dumps(beat() | {"recent": {"wall": "long"}}),
        json.dumps(beat() | {"recent": {"wall": 1e30}}),
        json.dumps(beat()).replace("20000000.0", "NaN"),
        json.dumps(beat() | {"stacks": [{"frames": [["a"]]}]}),
        json.dumps(beat() | {"error": "x" * MAX_BYTES}),
    ],
)
def test_a_damaged_or_malicious_file_is_left_out(tmp_path: Path, text: str) -> None:
    logdir = write(tmp_path, beat(0), beat(1))
    next(logdir.rglob("heartbeat.json")).write_text(text)
    (state,) = LiveJobs(str(logdir), clock=lambda: NOW_S).read(over=True)
    assert len(state.job.ranks) == 1


def test_texts_cannot_control_a_terminal(tmp_path: Path) -> None:
    hostile = beat(0, 1, where=["\x1b[31m\nevil", 3, "\u202ef"], still_s=30.0, step_unix_ns=(NOW_S - 40) * 1e9)
    (state,) = LiveJobs(str(write(tmp_path, hostile)), clock=lambda: NOW_S).read()
    assert state.verdict.headline.isprintable()
    assert "evil" in state.verdict.headline


def test_a_link_or_a_pipe_in_place_of_the_file_is_not_waited_for(tmp_path: Path) -> None:
    import os

    logdir = write(tmp_path, beat(0))
    path = next(logdir.rglob("heartbeat.json"))
    path.unlink()
    os.mkfifo(path)
    assert Heartbeats(str(logdir)).read() == []


def test_an_unchanged_file_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logdir = write(tmp_path, beat(0), beat(1))
    beats = Heartbeats(str(logdir))
    first = beats.read()
    monkeypatch.setattr("tb_bottleneck.live.heartbeats.open_regular", lambda _: pytest.fail("it was read again"))
    assert beats.read() == first


def test_many_ranks_with_a_whole_day_are_read_in_one_round(tmp_path: Path) -> None:
    """512 ranks, 90 parts of a run of eight hours; the clock of one GPU is lower from hour five on."""
    begin = NOW_S - 8 * 3600
    beats = []
    for rank in range(512):
        clocks = [1.7e9 if rank != 77 or part < 56 else 1.3e9 for part in range(90)]
        rows = [[begin + part * 320, 16_000, 20e6, 1e6, 9e6, clock] for part, clock in enumerate(clocks)]
        beats.append(beat(rank, 512, history=rows, device={"sm_clock": clocks[-1]}))
    live = LiveJobs(str(write(tmp_path, *beats)), clock=lambda: NOW_S)
    began = time.perf_counter()
    (state,) = live.read()
    first = time.perf_counter() - began
    assert (state.verdict.cause, state.verdict.ranks) == ("rank_device", (77,))
    assert first < 10  # an order of magnitude more than it takes; tests/bench has the figure
