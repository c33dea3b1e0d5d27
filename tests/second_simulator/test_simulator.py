"""Tests that the second simulator keeps the rules of a process and of CUDA, and that its truths add up."""

import gzip
import json
from collections import defaultdict
from pathlib import Path

import pytest
from second_simulator.kineto import write
from second_simulator.machine import Machine
from second_simulator.programs import PROGRAMS
from second_simulator.truth import DEVICE_WORK, Run, idle_by_activity, simulate, truth

SEEDS = range(1, len(PROGRAMS), 3)
"""Every third kind of program."""


@pytest.fixture(scope="module", params=SEEDS)
def run(request: pytest.FixtureRequest) -> Run:
    return simulate(request.param)


def _rows(m: Machine, *categories: str) -> list:
    return [row for row in m.rows if row.category in categories]


@pytest.mark.parametrize("seed", [3, 9, 31])
def test_a_seed_draws_the_same_run(seed: int) -> None:
    assert simulate(seed).machine.rows == simulate(seed).machine.rows
    assert simulate(seed).machine.rows != simulate(seed + len(PROGRAMS)).machine.rows


def test_host_events_of_a_thread_nest(run: Run) -> None:
    threads = defaultdict(list)
    for row in _rows(run.machine, "cpu_op", "cuda_runtime", "user_annotation", "python_function"):
        if row.name != "uploader.py(12): run":
            threads[row.tid].append((row.start, -row.end))
    for spans in threads.values():
        open_ends: list[float] = []
        for start, end in sorted(spans):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or -end <= open_ends[-1]
            open_ends.append(-end)


def test_device_work_follows_its_call_and_the_order_of_its_stream(run: Run) -> None:
    calls = {row.args["correlation"]: row for row in _rows(run.machine, "cuda_runtime")}
    free: dict[int, float] = defaultdict(float)
    for row in _rows(run.machine, "kernel", "gpu_memcpy"):
        assert row.start > calls[row.args["correlation"]].start
        assert row.start > free[row.tid]
        free[row.tid] = row.end


def test_a_synchronizing_call_ends_after_the_work_before_it(run: Run) -> None:
    ends: dict[int, float] = defaultdict(float)
    order = {row.args["correlation"]: row for row in _rows(run.machine, "kernel", "gpu_memcpy")}
    for call in sorted(_rows(run.machine, "cuda_runtime"), key=lambda row: row.start):
        if call.args["correlation"] in order:
            work = order[call.args["correlation"]]
            ends[work.tid] = max(ends[work.tid], work.end)
        elif call.name in ("cudaDeviceSynchronize", "cudaFree"):
            assert call.end >= max(ends.values(), default=0.0)
        elif call.name == "cudaStreamSynchronize":
            assert call.end >= ends[7]


def test_the_activity_of_the_host_covers_the_recording(run: Run) -> None:
    at = run.start
    for start, end, _ in run.machine.activity:
        assert start == pytest.approx(at)
        at = end
    assert at == pytest.approx(run.start + run.time)


def test_idle_and_busy_time_sum_to_the_recording(run: Run) -> None:
    busy, at = 0.0, run.start
    for start, end in sorted((row.start, row.end) for row in _rows(run.machine, "kernel", "gpu_memcpy")):
        busy += max(0.0, end - max(start, at))
        at = max(at, end)
    assert sum(idle_by_activity(run).values()) * run.time + busy == pytest.approx(run.time)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_truth_names_what_can_be_recovered(seed: int) -> None:
    run = simulate(seed)
    known = truth(run, seed)
    # Without a cost a run may become slower, as more copies then meet on the device, but only by little.
    assert all(-0.03 < share <= 1.0 for share in known.recoverable.values())
    assert known.accepted
    if known.accepted != {"gpu_unused"}:
        best = max(known.recoverable, key=lambda regime: known.recoverable[regime])
        assert best in known.accepted or best in DEVICE_WORK


def test_a_removed_component_shortens_the_run_by_its_wait() -> None:
    seed = list(PROGRAMS).index("sorts_on_cpu")
    run, without = simulate(seed), simulate(seed, frozenset({"metric"}))
    waited = sum(end - start for start, end, component in run.machine.activity if component == "metric")
    assert run.time - without.time == pytest.approx(waited, rel=0.02)


def test_events_of_a_file_that_touch_do_not_overlap(tmp_path: Path) -> None:
    run = simulate(list(PROGRAMS).index("sorts_on_cpu"))
    write(tmp_path / "run.json.gz", run.machine)
    with gzip.open(tmp_path / "run.json.gz", "rt") as file:
        events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    sorts = [event for event in events if event["name"] == "aten::sort"]
    ends = {round(event["ts"] * 1e3) + round(event["dur"] * 1e3) for event in sorts}
    starts = {round(event["ts"] * 1e3) for event in events if event["name"].startswith("ProfilerStep")}
    assert len(ends & starts) == run.steps - 1


@pytest.mark.parametrize("seed", [0, list(PROGRAMS).index("late_rank")])
def test_a_file_holds_every_event(seed: int, tmp_path: Path) -> None:
    run = simulate(seed)
    write(tmp_path / "run.json.gz", run.machine, run.ranks)
    with gzip.open(tmp_path / "run.json.gz", "rt") as file:
        trace = json.load(file)
    complete = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(run.machine.rows) < len(complete)
    starts = {event["id"] for event in trace["traceEvents"] if event["ph"] == "s"}
    assert {event["id"] for event in trace["traceEvents"] if event["ph"] == "f"} <= starts
    assert ("distributedInfo" in trace) == (run.ranks > 1)


def test_the_simulator_stays_small() -> None:
    modules = [
        path
        for path in Path(__file__).parent.glob("*.py")
        if path.stem not in ("test_simulator", "score", "test_score")
    ]
    assert sum(len(path.read_text().splitlines()) for path in modules) <= 800
