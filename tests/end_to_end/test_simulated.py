"""Compares account and verdict with simulated trainings, for which the truth is known by construction."""

import os
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from simulate.examine import RECOVERABLE, TOLERANCE, WORTH_RECOVERING, examine, recorded, right_answers
from simulate.kineto import DIALECTS, Recording, kineto_json
from simulate.machine import QUEUE_LIMIT, Machine
from simulate.pieces import MULTIPROCESSORS
from simulate.problems import HARD_NEGATIVES, PROBLEMS
from simulate.program import (
    COMPUTE_STREAM,
    PYTHON,
    Close,
    Instruction,
    Kernel,
    Launch,
    Open,
    Program,
    Spend,
    Wait,
)
from simulate.run import Run
from simulate.training import program_of
from simulate.truth import truth_of
from simulate.workload import Workload, healthy, random_workload

from tb_bottleneck.diagnosis.trace import diagnose

SEEDS = st.integers(0, 2**20)
# A smaller seed is no simpler training, so there is nothing to shrink to.
QUICK = settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
MANY = range(500_000, 500_100)


# --- The analyser against the truth ---


def accounts_are_true(seed: int) -> None:
    workload = random_workload(seed)
    result = examine(workload, recorded(workload, seed))
    assert result.report.verdict.regime, result.describe()
    assert result.worst() <= TOLERANCE, result.describe()
    assert result.report.verdict.regime in right_answers(result.truth), result.describe()


@QUICK
@given(SEEDS)
def test_any_training_gets_its_true_account_and_verdict(seed):
    accounts_are_true(seed)


@pytest.mark.nightly
def test_at_most_one_in_a_hundred_trainings_is_judged_wrong():
    """Tests the published accuracy with other seeds: a recording does not show everything (ACCURACY.md)."""
    cases = [examine(workload, recorded(workload, seed)) for seed, workload in ((s, random_workload(s)) for s in MANY)]
    wrong = [case for case in cases if case.report.verdict.regime not in right_answers(case.truth)]
    off = [case for case in cases if case.worst() > TOLERANCE]
    assert len(wrong) <= 0.01 * len(cases), "\n\n".join(case.describe() for case in wrong)
    assert len(off) <= 0.02 * len(cases), "\n\n".join(case.describe() for case in off)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_planted_problem_is_named(name, seed):
    problem = PROBLEMS[name]
    result = examine(problem.make(seed))
    assert right_answers(result.truth)[0] == problem.regime, (
        f"the simulator planted something else: {result.describe()}"
    )
    assert result.report.verdict.regime == problem.regime, result.describe()
    assert problem.cause in {finding.cause for finding in result.report.findings}, result.describe()
    assert result.report.findings[0].cause in problem.named, result.describe()
    unknown = result.report.findings[0].speedup.basis == "none"  # the recording has no aligned products to compare with
    assert result.report.verdict.severity in (("info",) if unknown else ("warning", "critical"))
    assert unknown == (name == "products of odd shapes")
    assert result.worst() <= TOLERANCE, result.describe()


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", HARD_NEGATIVES)
def test_a_training_bound_by_its_device_stays_clean(name, seed):
    result = examine(HARD_NEGATIVES[name](seed))
    assert right_answers(result.truth)[0] not in RECOVERABLE, f"the simulator planted a problem: {result.describe()}"
    assert result.report.verdict.severity == "none", result.describe()
    assert not [finding for finding in result.report.findings if finding.regime in RECOVERABLE], result.describe()
    assert result.worst() <= TOLERANCE, result.describe()


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_every_dialect_gets_the_same_verdict(dialect):
    problem = PROBLEMS["loader in the main process"]
    for steps in (True, False):
        workload = problem.make(3)
        result = examine(workload, Recording(dialect, steps=steps, stacks=workload.stacks, noise=True))
        assert result.report.verdict.regime == "input", result.describe()
        assert result.report.window.basis == ("profiler_step" if steps else "inferred")
        assert result.worst() <= TOLERANCE, result.describe()


def test_a_recording_without_any_annotation_of_steps_is_judged_by_its_period():
    result = examine(PROBLEMS["Python between the steps"].make(3), Recording(DIALECTS[3], steps=False, optimizer=False))
    assert result.report.verdict.regime == "host", result.describe()


def test_rank_and_device_are_those_of_the_recording():
    result = examine(PROBLEMS["exposed collectives"].make(1), Recording(DIALECTS[3], distributed=True))
    assert (result.report.rank, result.report.world_size) == (0, 8)
    assert result.report.device.name == "NVIDIA A100-SXM4-40GB"


@pytest.mark.parametrize(
    ("remaining", "code"),
    [
        (slice(120, None), "damaged_steps"),
        (slice(None, -20), "damaged_steps"),
        (slice(None, None, 4), "kernels_lost"),
    ],
)
def test_a_recording_that_lost_kernels_is_reported_as_degraded(tmp_path, remaining, code):
    """CUPTI drops device rows at the start of a session, at the end, or when its buffers are full."""
    _, run = run_of(healthy(1))
    assert 200 < len(run.ops) < 500, "120 operations are more than the first step, and 20 well above 2 %"
    path = tmp_path / "lost.pt.trace.json"
    path.write_text(kineto_json(replace(run, ops=run.ops[remaining]), Recording(DIALECTS[3])))
    report = diagnose(str(path))
    assert report.health.status == "degraded"
    assert code in [reason.code for reason in report.health.reasons]


def test_a_recording_without_its_kernels_gets_no_verdict(tmp_path):
    _, run = run_of(healthy(1))
    path = tmp_path / "none.pt.trace.json"
    path.write_text(kineto_json(replace(run, ops=()), Recording(DIALECTS[3])))
    report = diagnose(str(path))
    assert report.health.status == "incomplete"
    assert not report.HasField("verdict")


@pytest.mark.parametrize("part", [0.75, 0.9, 0.99])
def test_a_recording_cut_off_by_the_end_of_its_job_is_judged_by_the_remaining_events(tmp_path, part):
    problem = PROBLEMS["loader in the main process"]
    _, run = run_of(problem.make(1))
    text = kineto_json(run, Recording(DIALECTS[3]))
    path = tmp_path / "cut.pt.trace.json"
    path.write_text(text[: int(len(text) * part)])
    os.utime(path, (1, 1))  # long ago, so the file is complete
    report = diagnose(str(path))
    assert report.health.status == "degraded"
    assert "truncated" in [reason.code for reason in report.health.reasons]
    assert report.verdict.regime == "input"


# --- The simulator itself ---


def run_of(workload: Workload) -> tuple[Program, Run]:
    program = program_of(workload)
    return program, Machine(program).run()


@settings(QUICK, max_examples=15)
@given(SEEDS)
def test_the_simulated_device_executes_streams_in_order(seed):
    _, run = run_of(random_workload(seed))
    streams = {(op.device, op.stream) for op in run.ops}
    for stream in streams:
        ops = [op for op in run.ops if (op.device, op.stream) == stream]
        assert all(before.end < after.begin for before, after in pairwise(ops)), "a stream is a queue"
        assert all(op.issued < op.begin for op in ops), "nothing begins before it is launched"
    for before, after in pairwise(run.activities):
        assert before[1] == after[0], "the host's activities have no gaps"


@settings(QUICK, max_examples=10)
@given(SEEDS)
def test_the_truth_sums_to_the_window(seed):
    program, run = run_of(random_workload(seed))
    for basis in ("profiler_step", "inferred", "whole"):
        truth = truth_of(program, run, MULTIPROCESSORS, basis)
        assert sum(truth.ns.values()) == truth.end - truth.begin
        assert min(truth.ns.values()) >= 0


def test_the_same_seed_writes_the_same_file():
    workload = random_workload(5)
    first, second = (kineto_json(run_of(workload)[1], Recording(DIALECTS[2])) for _ in range(2))
    assert first == second


def test_a_full_queue_blocks_the_launching_call():
    kernel = Kernel("k", "contraction", 50_000, MULTIPROCESSORS, 1_000)
    launches: list[Instruction] = [Launch((kernel,), 5_000, 6_000)] * (QUEUE_LIMIT + 200)
    run = Machine(Program(tuple(launches))).run()
    durations = [row.end - row.begin for row in run.rows]
    assert durations[0] == 5_000
    assert durations[-1] == 51_000  # one kernel and its gap, until a place in the queue is free
    pending = sum(op.issued <= run.ops[-1].issued < op.begin for op in run.ops)
    assert pending == QUEUE_LIMIT


def test_a_wait_blocks_the_host_and_its_true_cost_is_the_idle_time_that_disappears_without_it():
    """Simulates two kernels, a wait that drains the device, and 100 us of dispatching that would otherwise be hidden:

    host  launch wait............. dispatch launch
    gpu       ####################.................####
    """
    kernel = Kernel("k", "contraction", 400_000, MULTIPROCESSORS, 1_000)
    launch = Launch((kernel,), 5_000, 6_000)
    instructions = (
        Open("annotation", "ProfilerStep#0"),
        launch,
        Wait("StreamSynchronize", 2_000, 5_000),
        Spend(100_000),
        launch,
        Close(),
    )
    program = Program(instructions)
    run = Machine(program).run()
    truth = truth_of(program, run, MULTIPROCESSORS, "profiler_step")
    assert truth.ns["compute"] == 800_000
    assert truth.ns["sync"] == 5_000 + 100_000 + 6_000  # its return, the dispatching, the launch's latency
    assert truth.ns["launch"] == 6_000  # before the first kernel
    assert truth.ns.get("underfilled", 0) == 0


def test_python_between_two_kernels_counts_as_host_and_a_graph_is_one_call():
    kernels = tuple(Kernel("k", "streaming", 20_000, MULTIPROCESSORS, 800) for _ in range(10))
    instructions = (
        Open("annotation", "ProfilerStep#0"),
        Launch(kernels, 30_000, 10_000, COMPUTE_STREAM, call="GraphLaunch"),
        Spend(2_000_000, PYTHON),
        Launch(kernels, 30_000, 10_000, COMPUTE_STREAM, call="GraphLaunch"),
        Close(),
    )
    program = Program(instructions)
    run = Machine(program).run()
    truth = truth_of(program, run, MULTIPROCESSORS, "profiler_step")
    assert len({op.call for op in run.ops}) == 2
    assert truth.ns["memory"] == 20 * 20_000
    assert truth.ns["underfilled"] == 18 * 800  # the device's own pauses inside a graph
    busy_until = 10_000 + 10 * 20_000 + 9 * 800
    assert truth.ns["host"] == 30_000 + 2_000_000 - busy_until


def test_the_thresholds_are_those_of_the_rules():
    from tb_bottleneck.bottlenecks import judge
    from tb_bottleneck.bottlenecks.launch import rule as launch

    assert WORTH_RECOVERING == judge.WORTH_RECOVERING
    assert RECOVERABLE["launch"] == launch.RECOVERABLE_OF_LAUNCHES
