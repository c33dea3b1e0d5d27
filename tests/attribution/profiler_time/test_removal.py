"""The recording without the profiler's own time."""

import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from helpers.draw import drawn, drawn_trace, loaded

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.profiler_time.costs import costs_of
from tb_bottleneck.attribution.profiler_time.host_pieces import host_pieces
from tb_bottleneck.attribution.profiler_time.removal import without_profiler_time
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import Spans, overlapping
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.measures.profiler_overhead import overhead_left
from tb_bottleneck.report.builders.recording_description import correction_text
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.steps import find_steps

# Steps of 10 ms on a CPU: Python for 5 ms, then operators for 4 ms.
ON_CPU = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    python  #####.....#####.....#####.....
    op      .....####......####......####.
"""
# The same on a device; while the device works, Python is not slow for anybody.
ON_DEVICE = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    python  ####......####......####......
    op      ....#.........#.........#.....
    launch  ....|.........|.........|.....
    gpu     .....####......####......####.
"""
# Batches are made for 5 ms by Python in the main process.
WITH_LOADER = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    loader  #####.....#####.....#####.....
    python  .###.......###.......###......
    op      .....####......####......####.
"""
# The training waits 2 ms for a worker, then Python runs for 3 ms.
WITH_WORKERS = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    workers ##........##........##........
    python  ##.##.....##.##.....##.##.....
    op      .....####......####......####.
"""
# An operator takes 20 ms more in every third step.
WITH_LONG_STEPS = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccccccccccccccccccccccc
    python  #####.....#####.....#####.........................
    op      .....####......####......########################.
"""
# Then two steps without stacks: Python takes 2 ms before the operator and 1 ms after it.
THEN_STACKLESS = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccddddddeeeeee
    python  #####.....#####.....#####.................
    op      .....####......####......####...###...###.
"""
SLOW = {
    "python_slowdown": 2.5,
    "python_call_ns": 100.0,
    "c_call_ns": 100.0,
    "operator_ns": 1000.0,
    "operator_without_stacks_ns": 1000.0,
}
MS = 1_000_000


def recording(drawing: str = ON_CPU, **context: object) -> Recording:
    trace = drawn_trace(
        drawing, 1000, tb_bottleneck={"context": {"profiler_costs": SLOW, "python": "3.11.4"} | context}
    )
    steps = find_steps(trace)
    assert steps is not None
    return Recording(trace, steps)


def host_ms(found: Recording) -> float:
    return found.account.ns[Regime.HOST] / len(found.steps) / MS


def test_bytecode_takes_its_time_without_the_profiler() -> None:
    found = without_profiler_time(recording())
    assert found.steps.durations / MS == pytest.approx(10 - 3.0, abs=0.05)
    assert host_ms(found) == pytest.approx(5 / 2.5 + 1, abs=0.05), "and 1 ms in which nothing was recorded"
    assert sum(found.account.ns.values()) == found.account.window
    assert found.as_recorded.steps.durations.tolist() == [10 * MS] * 3


@pytest.mark.parametrize("long", [4, 5, 8])
def test_of_uneven_steps_only_the_more_frequent_kind_is_compared(long: int) -> None:
    """Of 20 steps without the profiler, 6 collected garbage, and 2 of 6 in the trace: 15 % of it went missing."""
    logged = [7.0 * MS] * (20 - long) + [27.0 * MS] * long
    context = {"unprofiled_step_ns": 7.0 * MS, "unprofiled_steps": 20, "unprofiled_step_times_ns": logged}
    found = without_profiler_time(recording(WITH_LONG_STEPS, **context))
    assert found.correction is not None
    assert found.correction.solved
    assert found.steps.durations / MS == pytest.approx([7, 7, 27], abs=0.1)


def test_operators_keep_their_time_but_for_the_cost_of_recording_them() -> None:
    before = recording()
    found = without_profiler_time(before)
    ops = np.flatnonzero([name == "aten::linear" for name in found.trace.names])
    rows = np.isin(found.trace.events.name[:], ops)
    assert found.trace.events.duration[rows] / MS == pytest.approx(4.0, abs=0.001)


@pytest.mark.parametrize("unprofiled_ms", [9.0, 8.0, 7.0, 6.8, 5.0])
def test_the_step_takes_as_long_as_without_the_profiler(unprofiled_ms: float) -> None:
    found = without_profiler_time(recording(unprofiled_step_ns=unprofiled_ms * MS))
    assert float(np.median(found.steps.durations)) / MS == pytest.approx(unprofiled_ms, abs=0.01)
    assert found.correction is not None
    assert found.correction.solved


@pytest.mark.parametrize(("step_ms", "loader_ms"), [(8.5, 4.0), (9.0, 4.5), (6.8, 3.0)])
def test_the_loader_takes_as_long_as_without_the_profiler_and_so_does_the_rest(
    step_ms: float, loader_ms: float
) -> None:
    found = without_profiler_time(
        recording(WITH_LOADER, unprofiled_step_ns=step_ms * MS, unprofiled_loader_ns=loader_ms * MS)
    )
    assert float(np.median(found.steps.durations)) / MS == pytest.approx(step_ms, abs=0.01)
    assert found.account.ns[Regime.INPUT] / len(found.steps) / MS == pytest.approx(loader_ms, abs=0.01)


def test_the_rest_of_the_step_is_what_the_parts_leave_in_each_step() -> None:
    """The medians of the loader (4 ms) and of the rest (3 ms) do not add up to that of the steps (10 ms)."""
    drawing = """
        step    aaaaaaaaaabbbbbbbbbbccccccc
        loader  #######...####......####...
        python  .######....###.......###...
        op      .......##.....#####.....##.
    """
    found = without_profiler_time(recording(drawing, unprofiled_step_ns=8.0 * MS, unprofiled_loader_ns=3.5 * MS))
    steps, loader = found.steps, found.host.activities(0)[Activity.LOAD_BATCH]
    assert float(np.median(loader.covered(steps.edges[:-1], steps.edges[1:]))) / MS == pytest.approx(3.5, abs=0.02)
    assert float(np.median(steps.durations)) / MS == pytest.approx(8.0, abs=0.02)


BACKWARD = "torch/autograd/__init__.py(255): backward"


def with_backward(step_ms: float, backward_ms: float) -> Recording:
    """Returns the recording of ON_CPU, whose operators take 4 ms of a backward pass of 4.2 ms."""
    context = {"unprofiled_step_ns": step_ms * MS, "unprofiled_backward_ns": backward_ms * MS}
    made = drawn(ON_CPU, 1000, tb_bottleneck={"context": {"profiler_costs": SLOW, "python": "3.11.4"} | context})
    first = next(event for event in made["traceEvents"] if event.get("cat") == "python_function")
    frames = [first | {"name": BACKWARD, "dur": 4_200, "ts": first["ts"] + 4_900 + 10_000 * step} for step in range(3)]
    trace = loaded(made | {"traceEvents": made["traceEvents"] + frames})
    steps = find_steps(trace)
    assert steps is not None
    return Recording(trace, steps)


def backward_times(recording: Recording) -> np.ndarray:
    rows = [recording.trace.names[name] == BACKWARD for name in recording.trace.events.name[:].tolist()]
    return recording.trace.events.duration[np.flatnonzero(rows)] / MS


@pytest.mark.parametrize(("step_ms", "backward_ms"), [(7.0, 4.0), (7.0, 3.5), (7.0, 2.0), (6.5, 3.0)])
def test_the_backward_pass_takes_as_long_as_without_the_profiler_and_so_does_the_rest(
    step_ms: float, backward_ms: float
) -> None:
    """In a sampler of a graph, Python took 3.0 of 5.9 ms in place of 4.1: operators had been slowed more."""
    found = without_profiler_time(with_backward(step_ms, backward_ms))
    assert backward_times(found) == pytest.approx(backward_ms, abs=0.02)
    assert float(np.median(found.steps.durations)) / MS == pytest.approx(step_ms, abs=0.02)


@pytest.mark.parametrize("backward_ms", [5.0, 6.9])
def test_a_part_that_was_logged_longer_than_recorded_is_no_part(backward_ms: float) -> None:
    """The logged time of an optimizer contains what its closure does, the recorded one does not."""
    found, alone = (without_profiler_time(with_backward(7.0, logged)) for logged in (backward_ms, 0.0))
    assert backward_times(found).tolist() == backward_times(alone).tolist()
    assert float(np.median(found.steps.durations)) / MS == pytest.approx(7.0, abs=0.02)


def test_parts_that_do_not_add_up_to_the_step_are_corrected_together() -> None:
    """The rest would have to take 8.9 ms, but was recorded with 5.8."""
    found, alone = (without_profiler_time(with_backward(9.0, logged)) for logged in (0.1, 0.0))
    assert backward_times(found).tolist() == backward_times(alone).tolist()
    assert float(np.median(found.steps.durations)) / MS == pytest.approx(9.0, abs=0.02)


def with_stackless(unprofiled_ms: float, drawing: str = THEN_STACKLESS, **context: object) -> Recording:
    context |= {"profiler_costs": SLOW, "python": "3.11.4", "unprofiled_step_ns": unprofiled_ms * MS}
    trace = drawn_trace(drawing, 1000, tb_bottleneck={"context": context}, tb_bottleneck_steps_with_stacks=3)
    steps = find_steps(trace)
    assert steps is not None
    return Recording(trace, steps)


def operator_ms(recording: Recording) -> list[float]:
    rows = recording.trace.rows(Kind.CPU_OP)
    return (recording.trace.events.duration[rows] / MS).tolist()


@pytest.mark.parametrize("unprofiled_ms", [6.0, 5.5, 4.2])
def test_python_takes_as_long_as_in_steps_without_stacks(unprofiled_ms: float) -> None:
    """The costs alone would leave more than 2 of 5 ms: bytecode was 2.5 times as slow where it was measured."""
    found = without_profiler_time(with_stackless(unprofiled_ms))
    python = 2 * math.sqrt(unprofiled_ms / 6) + 1  # no event covers the last 1 ms, so it stays
    assert host_ms(found) == pytest.approx(python, abs=0.02)
    assert operator_ms(found) == pytest.approx([unprofiled_ms - python] * 3, abs=0.02)
    assert found.steps.durations / MS == pytest.approx(unprofiled_ms, abs=0.02)
    assert found.correction is not None
    assert found.correction.solved


def test_a_step_takes_no_longer_than_one_without_stacks() -> None:
    """Another program can run while steps without the profiler are timed. The profiler makes no step shorter."""
    found = without_profiler_time(with_stackless(9.0))
    assert found.steps.durations / MS == pytest.approx(6.0, abs=0.02)


def test_code_that_takes_longer_without_stacks_keeps_its_time() -> None:
    longer = THEN_STACKLESS.replace(".###...###.", ".##....##..")
    found = without_profiler_time(with_stackless(5.0, longer))
    python = 2 * math.sqrt(5 / 6) + 1
    assert host_ms(found) == pytest.approx(python, abs=0.02)
    assert operator_ms(found) == pytest.approx([5 - python] * 3, abs=0.02)


def test_the_optimizer_takes_its_logged_time_also_beside_steps_without_stacks() -> None:
    """Its small operators run one after another, and cost less to record than others."""
    drawing = """
        step     aaaaaaaaaabbbbbbbbbbccccccccccddddddeeeeee
        python   #####.....#####.....#####.................
        dispatch .....##........##........##.....#.....#...
        op       .......##........##........##....##....##.
    """
    context = {"profiler_costs": SLOW, "python": "3.11.4"}
    context |= {"unprofiled_step_ns": 5.5 * MS, "unprofiled_optimizer_ns": 1.5 * MS}
    header = {"tb_bottleneck": {"context": context}, "tb_bottleneck_steps_with_stacks": 3}
    made = drawn(drawing, 1000, **header)
    operators = [event for event in made["traceEvents"] if event.get("name") == "aten::linear"]
    named = {"cat": "user_annotation", "name": "Optimizer.step#SGD.step"}
    trace = loaded(made | {"traceEvents": made["traceEvents"] + [each | named for each in operators[:3]]})
    steps = find_steps(trace)
    assert steps is not None
    found = without_profiler_time(Recording(trace, steps))
    forward = 5.5 - 1.5 - (2 * math.sqrt(5.5 / 6) + 1)
    assert operator_ms(found) == pytest.approx([forward, 1.5] * 3, abs=0.02)
    assert found.steps.durations / MS == pytest.approx(5.5, abs=0.02)


@pytest.mark.parametrize("unprofiled_ms", [3.9, 2.9])
def test_steps_without_stacks_do_not_count_if_they_are_not_typical(unprofiled_ms: float) -> None:
    """Without the profiler, a step takes less than two thirds of their time, or less than their Python."""
    found, alone = with_stackless(unprofiled_ms), with_stackless(unprofiled_ms)
    object.__setattr__(alone.trace, "stackless", None)
    assert without_profiler_time(found).steps.edges.tolist() == without_profiler_time(alone).steps.edges.tolist()


@pytest.mark.parametrize("unprofiled_ms", [10.0, 11.0])
def test_where_the_profiler_cost_nothing_nothing_is_removed(unprofiled_ms: float) -> None:
    before = recording(unprofiled_step_ns=unprofiled_ms * MS)
    assert without_profiler_time(before) is before


def test_a_cost_beyond_its_range_stays() -> None:
    found = without_profiler_time(recording(unprofiled_step_ns=3.0 * MS))
    assert float(np.median(found.steps.durations)) / MS > 6.0, "the operators alone take 4 ms"


def test_a_thread_that_sleeps_sleeps_as_long_on_a_busy_machine() -> None:
    """A sleep of 20 ms counted as 17 because all other work was slower while it was recorded."""
    calls = (0, "<built-in function sleep>"), (20_000, "<built-in method sort of list object at 0x7f>")
    events = [
        {"ph": "X", "cat": "python_function", "pid": 1, "tid": 1, "ts": start_us, "dur": 20_000, "name": name}
        for start_us, name in calls
    ]
    trace = loaded({"traceEvents": events, "tb_bottleneck": {"context": {"profiler_costs": SLOW}}})
    pieces = host_pieces(trace, 0)
    costs = costs_of(trace)
    assert costs is not None
    left = (pieces.end - pieces.begin - pieces.added(costs, 2.0)) / MS
    assert left.tolist() == [pytest.approx(20, abs=0.01), pytest.approx(20 / 1.5, abs=0.01)]


@pytest.mark.parametrize("seed", range(20))
def test_pieces_of_a_part_of_the_time_are_parts_of_all_pieces(seed: int) -> None:
    random = np.random.default_rng(seed)
    events = [{"ph": "X", "cat": "python_function", "pid": 1, "tid": 1, "ts": 0, "dur": 4_000, "name": "f"}]
    events += nested_calls(random, 0, 4_000)
    trace = loaded({"traceEvents": events})
    cuts = np.sort(random.choice(4_000_000, 12, replace=False)).astype(np.int64)
    within = Spans(cuts[::2], cuts[1::2])
    every, some = host_pieces(trace, 0), host_pieces(trace, 0, within)
    own, span = overlapping(every.begin, every.end, within.starts, within.ends)
    assert some.begin.tolist() == np.maximum(every.begin[own], within.starts[span]).tolist()
    assert some.end.tolist() == np.minimum(every.end[own], within.ends[span]).tolist()
    part = (some.end - some.begin) / (every.end - every.begin)[own]
    assert some.edges == pytest.approx(every.edges[:, own] * part)
    assert some.is_python.tolist() == every.is_python[own].tolist()


def nested_calls(random: np.random.Generator, begin: int, end: int) -> list[dict[str, object]]:
    """Returns events of calls of all kinds, nested at random, from `begin` to `end` us."""
    kinds = (("python_function", "g"), ("python_function", "<built-in function len>"), ("cpu_op", "aten::add"))
    edges = sorted({begin, end, *random.integers(begin, end + 1, 5).tolist()})
    events: list[dict[str, object]] = []
    for first, last in pairwise(edges):
        if random.random() < 0.6:
            category, name = kinds[random.integers(3)]
            events.append(
                {"ph": "X", "cat": category, "pid": 1, "tid": 1, "ts": first, "dur": last - first, "name": name}
            )
            events += nested_calls(random, first, last) if last - first > 50 else []
    return events


def test_python_of_unknown_cost_stays_as_it_is() -> None:
    before = recording(profiler_costs=None, python="")
    assert without_profiler_time(before) is before


def test_newer_python_runs_bytecode_at_full_speed() -> None:
    before = recording(profiler_costs=None, python="3.13.1")
    assert without_profiler_time(before) is before


def test_only_time_in_which_the_device_waits_is_corrected() -> None:
    before = recording(ON_DEVICE)
    found = without_profiler_time(before)
    assert isinstance(overhead_left(found), Missing)
    assert found.trace.device_ops.end - found.trace.device_ops.start == pytest.approx([4 * MS] * 3)
    busy = before.account.ns[Regime.COMPUTE]
    assert found.account.ns[Regime.COMPUTE] == busy
    assert found.account.ns[Regime.HOST] < before.account.ns[Regime.HOST] / 1.8
    assert sum(found.account.ns.values()) == found.account.window


def test_the_report_states_what_was_taken_out(tmp_path: Path) -> None:
    context = {"profiler_costs": SLOW, "python": "3.11.4", "unprofiled_step_ns": 7.5 * MS}
    path = tmp_path / "t.pt.trace.json"
    long = "\n".join(f"{name} {row * 3}" for name, row in (line.split() for line in ON_CPU.strip().splitlines()))
    # Two operators each, because a few would not be judged.
    content = drawn(long.replace("#.", "=."), 1000, tb_bottleneck={"context": context}, deviceProperties=[])
    path.write_text(json.dumps(content))
    report = diagnose(str(path))
    assert report.window.recorded_step_ns == 10 * MS
    assert report.window.step_ns.median == pytest.approx(7.5 * MS, rel=0.01)
    assert "2.50 ms of it is the profiler's own time" in report.window.correction
    assert "measured in the process" in report.window.correction
    assert "without stacks" not in report.window.correction
    assert not report.unprofiled.sentence
    assert report.unprofiled.ratio == pytest.approx(10 / 7.5)
    assert sum(row.share for row in report.account) == pytest.approx(1)


@pytest.mark.parametrize(("wait_ms", "waited_ms"), [(3.0, 3.0), (2.0, 2.0), (1.0, 2.0)])
def test_a_step_that_is_slower_while_recorded_waits_less_for_its_workers(wait_ms: float, waited_ms: float) -> None:
    """A step takes 10 ms in any case, because the worker takes that long for a batch."""
    found = recording(WITH_WORKERS, unprofiled_step_ns=10.0 * MS, unprofiled_loader_ns=wait_ms * MS)
    corrected = without_profiler_time(found)
    assert corrected.account.ns[Regime.INPUT] / 3 / MS == pytest.approx(waited_ms, abs=0.02)
    assert corrected.steps.durations / MS == pytest.approx(10.0, abs=0.02)
    if waited_ms > 2:
        text = correction_text(corrected)
        assert "1.00 ms of it is the profiler's own time" in text
        assert "waits 1.00 ms longer" in text


def test_taking_a_batch_from_a_worker_is_not_the_wait_that_becomes_longer() -> None:
    drawing = WITH_WORKERS.replace("##.##.....", "#..##.....") + "    handover " + ".#........" * 3
    found = recording(drawing, unprofiled_step_ns=10.0 * MS, unprofiled_loader_ns=3.0 * MS)
    corrected = without_profiler_time(found)
    events = corrected.trace.events
    handover = np.flatnonzero([name.endswith("rebuild_storage_fd") for name in corrected.trace.names])
    taken = events.duration[np.isin(events.name[:], handover)] / MS
    assert len(taken) == 3
    assert (taken <= 1.0).all()


def test_a_wait_that_does_not_explain_the_step_stays() -> None:
    """The rest of the step took 8 ms, and cannot take 4 ms without the profiler."""
    found = recording(WITH_WORKERS, unprofiled_step_ns=10.0 * MS, unprofiled_loader_ns=6.0 * MS)
    assert without_profiler_time(found) is found


@pytest.mark.parametrize(("last_operator", "more"), [("###", "2 more steps"), ("...", "1 more step")])
def test_the_report_states_that_steps_without_stacks_were_compared(last_operator: str, more: str) -> None:
    """Without its operator, the last step is not whole."""
    drawing = THEN_STACKLESS.replace("###.\n", f"{last_operator}.\n")
    text = correction_text(without_profiler_time(with_stackless(6.0, drawing)))
    assert f"{more} recorded without stacks" in text
