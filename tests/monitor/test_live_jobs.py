"""Real jobs of several processes with Gloo: a rank that hangs, is stopped, is killed or is slow is named."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tb_bottleneck.live.state import LiveJobs, LiveState

PROGRAM = Path(__file__).parent / "live_program.py"
DEADLINE_S = 120.0


class Job:
    """Processes of one job, and its state."""

    def __init__(self, logdir: Path, ranks: int, fault: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.logdir = logdir
        self.live = LiveJobs(str(logdir))
        self.processes = [
            subprocess.Popen(
                [sys.executable, str(PROGRAM), fault, str(logdir)],
                env={
                    **os.environ,
                    "RANK": str(rank),
                    "WORLD_SIZE": str(ranks),
                    "MASTER_ADDR": "127.0.0.1",
                    "MASTER_PORT": str(port),
                    "OMP_NUM_THREADS": "1",
                },
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for rank in range(ranks)
        ]

    def wait_for(self, what: Callable[[LiveState], bool]) -> LiveState:
        """Returns the state once `what` is true of it."""
        until = time.monotonic() + DEADLINE_S
        seen = "no heartbeat"
        while time.monotonic() < until:
            states = self.live.read()
            for state in states:
                seen = json.dumps(state.as_json()["verdict"])
                if what(state):
                    return state
            time.sleep(0.5)
        pytest.fail(f"not seen in {DEADLINE_S:.0f} s; the last state: {seen}")

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


FAULTS = ("hang", "none", "slow_data", "exception", "healthy")


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Job]]:
    """All jobs at once, two ranks each: they mostly wait."""
    started = {fault: Job(tmp_path_factory.mktemp(fault), 2, fault) for fault in FAULTS}
    yield started
    for job in started.values():
        job.end()


@pytest.mark.nightly
def test_a_healthy_job_has_no_alarm_and_ends(jobs: dict[str, Job]) -> None:
    """It has a slow first step, and evaluations on one rank."""
    job, seen = jobs["healthy"], set()
    until = time.monotonic() + DEADLINE_S
    while any(process.poll() is None for process in job.processes) and time.monotonic() < until:
        seen |= {(state.verdict.cause, state.verdict.severity) for state in job.live.read()}
        time.sleep(0.5)
    assert {severity for _, severity in seen} <= {"none", "info"}, seen
    (state,) = job.live.read(over=True)
    assert state.verdict.cause == "ended"


@pytest.mark.nightly
def test_a_rank_that_hangs_is_named_with_its_line_and_those_that_wait(jobs: dict[str, Job]) -> None:
    # On a busy machine, the other rank is seen to wait only after the rank that hangs.
    state = jobs["hang"].wait_for(lambda state: state.verdict.is_stall and bool(state.verdict.waiting))
    assert state.verdict.cause == "hang"
    assert state.verdict.ranks == (1,)
    assert state.verdict.place.startswith("live_program.py:")
    line = int(state.verdict.place.partition(":")[2])
    assert "time.sleep(1_000)" in PROGRAM.read_text().splitlines()[line - 1]
    assert state.verdict.waiting == (0,)
    assert state.job.ranks[0].place.startswith("live_program.py:"), "no hook of the monitor is a line of the program"
    assert "Rank 1 hangs at live_program.py:" in state.verdict.headline
    assert any(stack.training and stack.frames for rank in state.job.ranks for stack in rank.beat.stacks)


def test_a_slow_rank_is_named_although_all_steps_are_equally_long(jobs: dict[str, Job]) -> None:
    state = jobs["slow_data"].wait_for(lambda state: state.verdict.cause == "rank_input")
    assert state.verdict.ranks == (1,)
    walls = [rank.beat.recent["wall"] for rank in state.job.ranks]
    assert max(walls) < 1.2 * min(walls)


def test_an_exception_on_one_rank_is_a_failure_of_it(jobs: dict[str, Job]) -> None:
    state = jobs["exception"].wait_for(lambda state: state.verdict.cause == "failed")
    assert state.verdict.ranks == (1,)
    assert "ValueError" in state.verdict.headline


def test_a_stopped_and_a_killed_process_differ_from_one_that_hangs(jobs: dict[str, Job]) -> None:
    job = jobs["none"]
    job.wait_for(lambda state: state.job.step > 5)
    job.processes[1].send_signal(signal.SIGSTOP)
    state = job.wait_for(lambda state: state.verdict.is_stall)
    assert (state.verdict.cause, state.verdict.ranks) == ("stopped", (1,))
    assert f"kill -CONT {job.processes[1].pid}" in state.verdict.fix
    job.processes[1].kill()
    job.processes[1].wait()
    state = job.wait_for(lambda state: state.verdict.cause == "killed")
    assert state.verdict.ranks == (1,)
