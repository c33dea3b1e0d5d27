"""Tests of the steps of a trace, which end when host and device are both done.

Without marks, iterations are inferred from repeated names in bounded time, or the whole is one window.
"""

import json
import time
from collections import Counter

import numpy as np
import pytest
from helpers.draw import drawn, drawn_trace

from tb_bottleneck.trace.columns.labels import Thread
from tb_bottleneck.trace.columns.messages import NO_MESSAGE
from tb_bottleneck.trace.events import Events
from tb_bottleneck.trace.header import read_header
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.period import find_period
from tb_bottleneck.trace.steps import find_steps, step_numbers
from tb_bottleneck.trace.trace import Trace, load

ITERATION_NS = 1_000_000


def repeated(names: tuple[str, ...], iterations: int, out_of_turn: int = 0) -> Trace:
    """Returns names once per iteration, in this order; some calls of the last name are one iteration late."""
    count, late = len(names) * iterations, np.zeros((iterations, len(names)), np.int64)
    late[:out_of_turn, -1] = ITERATION_NS
    start = np.arange(iterations)[:, None] * ITERATION_NS + np.arange(len(names)) * ITERATION_NS // len(names) + late
    name = np.broadcast_to(np.arange(len(names)), start.shape).ravel()
    order = np.argsort(start.ravel(), kind="stable")
    nothing = np.zeros(count, np.int64)
    columns = {column: nothing.copy() for column in Events.__dataclass_fields__}
    columns |= {"start": start.ravel()[order], "name": name[order], "kind": nothing + Kind.CPU_OP}
    threads = (Thread("1", "1", "main"),)
    return Trace(read_header({}), Events(**columns), names, threads, ((b"", b"", b""),), (NO_MESSAGE,), Counter(), "")


NAMES = ("aten::embedding", "aten::cross_entropy", "autograd::engine::evaluate_function: AddmmBackward0")


def test_the_first_name_in_time_begins_the_iterations():
    assert find_period(repeated(NAMES, 10)).tolist() == [ITERATION_NS * number for number in range(10)]


def test_names_that_do_not_come_in_turn_are_no_period():
    assert len(find_period(repeated(NAMES, 20, out_of_turn=1))) == 20, "one of sixty calls"
    assert len(find_period(repeated(NAMES, 20, out_of_turn=10))) == 0


def test_a_hundred_thousand_matching_names_take_bounded_time():
    """Each name searched all calls for its own, so the time grew with the square of the number of names."""
    names = (*(f"op {number}" for number in range(100_000)), NAMES[-1])
    trace = repeated(names, 4)
    began = time.process_time()
    assert len(find_period(trace)) == 4
    assert time.process_time() - began < 5


def test_a_step_ends_with_its_device_work_if_that_is_later():
    steps = find_steps(
        drawn_trace(
            """
        step    aaaaaabbbbbb........
        launch  |.....|.............
        gpu     .aaaaaaaaa.bbbbb....
    """,
            unit_us=1000,
        )
    )
    assert steps.basis == "profiler_step"
    assert (steps.edges / 1e6).tolist() == [0, 10, 16]


def test_a_step_ends_with_the_host_if_that_is_later():
    steps = find_steps(
        drawn_trace(
            """
        step    aaaaaaaaaabbbbbbbbbb
        gpu     .aaa.......bbb......
    """,
            unit_us=1000,
        )
    )
    assert (steps.durations / 1e6).tolist() == [10, 10]


def test_the_first_of_many_steps_is_left_out_because_the_profiler_drained_the_device():
    """The queue hides a loader of 3 ms from the second step on; it is exposed only before the first."""
    steps = find_steps(
        drawn_trace(
            """
        step    aaaabbbbcccc................
        loader  ###.###.###.................
        launch  ...|...|...|................
        gpu     ....aaaaaaaabbbbbbbbcccccccc
    """,
            unit_us=1000,
        )
    )
    assert (steps.edges / 1e6).tolist() == [12, 20, 28]


STUB = """
    step    aaaaabbbbbcccccdddddeeeeef{last}
    op      #.#.#.#.#.#.#.#.#.#.#.#.#.{ops}
    launch  .|.|..|.|..|.|..|.|..|.|..{ops}
    gpu     ..ab...cd...ef...gh...ij..{gpu}
"""


@pytest.mark.parametrize(
    ("drawing", "length"),
    [
        (STUB.format(last="....", ops="....", gpu="...."), 4),  # 1 ms without work at the end
        (STUB.format(last="ffff", ops="....", gpu="...."), 4),  # the loop is over; the profiler stops later
        (
            """
    step    aaaaabbbbbcccccdddddeeeee
    op      #.#.#.#.#.#.#.#.#.#.#.#..
    launch  .|.|..|.|..|.|..|.|..|...
    gpu     ..ab...cd...ef...gh...i..
""",
            4,
        ),  # a step with somewhat less work is a step
    ],
)
def test_the_mark_that_is_open_when_the_profiler_stops_is_no_step(drawing, length):
    """Of five steps of 5 ms, the first is left out; a sixth mark without work would make a step of 4.2 ms."""
    steps = find_steps(drawn_trace(drawing, unit_us=1000))
    assert len(steps) == length
    assert np.allclose(steps.durations[1:], 5e6)


def test_a_step_with_fewer_calls_that_is_as_long_is_a_step():
    drawing = """
        step    aaaaabbbbbcccccddddd
        op      #.#.##.#.##.#.##....
        launch  .|.|..|.|..|.|..|...
        gpu     ..ab...cd...ef...gg.
    """
    assert len(find_steps(drawn_trace(drawing, unit_us=1000))) == 3


def test_one_step_and_a_stub_are_one_step():
    drawing = """
        step    aaaaaaaaaab
        op      #.#.#.#.#..
        launch  .|.|.......
        gpu     ..ab.......
    """
    assert len(find_steps(drawn_trace(drawing, unit_us=1000))) == 1


def loop(tmp_path, iterations: int, backward: bool, warmup: int = 0):
    """Returns a training loop without annotations: five operators per iteration, the last one of the backward pass."""
    events, now = [], 0.0
    for iteration in range(warmup + iterations):
        for name in ("aten::conv2d", "aten::conv2d", "aten::relu", "aten::cross_entropy", "aten::sum"):
            events.append({"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": now, "dur": 900})
            now += 1000 if iteration >= warmup else 20_000
        name = "autograd::engine::evaluate_function: ConvolutionBackward0" if backward else "aten::argmax"
        events.append({"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": now, "dur": 900})
        now += 1000
    path = tmp_path / "loop.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return find_steps(load(str(path)))


def test_iterations_are_inferred_from_operators_that_come_once_each(tmp_path):
    steps = loop(tmp_path, iterations=8, backward=True)
    assert steps.basis == "inferred"
    assert len(steps) == 7  # the last iteration has no successor that ends it
    assert np.allclose(steps.durations, 6e6)


def optimizer_loop(tmp_path, begins, calls_per_step=1):
    events = []
    for begin in begins:
        name = "autograd::engine::evaluate_function: AddmmBackward0"
        events.append({"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": begin, "dur": 90})
        for call in range(calls_per_step):
            at = begin + 100 + 50 * call
            row = {"ph": "X", "cat": "user_annotation", "name": "Optimizer.step#SGD.step", "pid": 1, "tid": 1}
            events.append({**row, "ts": at, "dur": 40})
    path = tmp_path / "optimizer.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return find_steps(load(str(path)))


def test_optimizer_calls_end_steps(tmp_path):
    steps = optimizer_loop(tmp_path, range(0, 6000, 1000))
    assert (steps.basis, len(steps)) == ("inferred", 5)


def test_several_optimizers_of_one_step_are_one_step(tmp_path):
    steps = optimizer_loop(tmp_path, range(0, 6000, 1000), calls_per_step=3)
    assert np.allclose(steps.durations, 1e6)


def test_steps_in_bursts_are_not_merged(tmp_path):
    """Workers deliver in bursts, so steps do too: pauses of 0.3 ms and of 30 ms alternate."""
    bursts = [burst + step for burst in (0, 30_000, 60_000) for step in (0, 300, 600)]
    assert len(optimizer_loop(tmp_path, bursts)) == 8


def test_leading_slow_iterations_are_left_out(tmp_path):
    steps = loop(tmp_path, iterations=8, backward=True, warmup=2)
    assert np.allclose(steps.durations, 6e6)


def test_what_repeats_without_a_backward_pass_may_be_layers(tmp_path):
    assert loop(tmp_path, iterations=8, backward=False).basis == "whole"


def test_without_steps_the_window_begins_with_the_fetch_of_the_first_batch():
    """5 ms in the loader before 4 ms of device work are part of that work; the fetch before it is not."""
    steps = find_steps(
        drawn_trace(
            """
        loader  ##..#####...........
        op      ..........##........
        launch  ........||||........
        gpu     ............abcd....
    """,
            unit_us=1000,
        )
    )
    assert steps.basis == "whole"
    assert (steps.begin / 1e6, steps.end / 1e6) == (4, 16)


def test_without_a_fetch_before_it_the_window_begins_with_the_device():
    steps = find_steps(
        drawn_trace(
            """
        loader  .............####...
        op      #####.....##........
        launch  ........||||........
        gpu     ............abcd....
    """,
            unit_us=1000,
        )
    )
    assert steps.begin / 1e6 == 12


def test_an_empty_trace_has_no_steps(tmp_path):
    path = tmp_path / "empty.json"
    path.write_text(json.dumps({**drawn("step ."), "traceEvents": []}))
    assert find_steps(load(str(path))) is None


def test_steps_are_numbered_as_the_profiler_counts_them(tmp_path):
    path = tmp_path / "a.pt.trace.json"

    def numbers(*names):
        marks = [{"ph": "X", "cat": "user_annotation", "name": name, "ts": 10 * k, "dur": 10} for k, name in names]
        work = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 10 * k + 2, "dur": 5} for k, _ in names]
        path.write_text(json.dumps({"traceEvents": marks + work}))
        trace = load(str(path))
        return step_numbers(trace, find_steps(trace))

    assert numbers((0, "ProfilerStep#12"), (1, "ProfilerStep#13")) == (12, 13)
    assert numbers((0, "ProfilerStep*"), (1, "ProfilerStep#13")) == ()
    assert numbers((0, "a"), (1, "b")) == ()


@pytest.mark.parametrize(
    ("marks", "damaged"),
    [
        ("aaaaabbbbbcccccddddd.....", 1),
        (".....bbbbbcccccdddddeeeee", 1),
        ("aaaaabbbbbcccccdddddeeeee", 0),
    ],
    ids=["last", "first", "none"],
)
def test_the_work_of_a_step_without_a_mark_is_noticed(marks, damaged):
    drawing = f"""
        step    {marks}
        op      #.#.##.#.##.#.##.#.##.#.#
        launch  .|.|..|.|..|.|..|.|..|.|.
        gpu     ..ab...cd...ef...gh...ij.
    """
    assert find_steps(drawn_trace(drawing, unit_us=1000)).damaged == damaged
