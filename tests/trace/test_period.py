"""Iterations are found from repeated names in bounded time; tests/trace/test_steps.py tests their use."""

import time
from collections import Counter

import numpy as np

from tb_bottleneck.trace.columns.labels import Thread
from tb_bottleneck.trace.columns.messages import NO_MESSAGE
from tb_bottleneck.trace.events import Events
from tb_bottleneck.trace.header import read_header
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.steps import find_period
from tb_bottleneck.trace.trace import Trace

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
