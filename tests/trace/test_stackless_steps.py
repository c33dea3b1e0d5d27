"""Steps that were recorded without stacks, after those with stacks."""

import pytest
from helpers.draw import drawn, drawn_trace, loaded

from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.stackless_steps import KEY
from tb_bottleneck.trace.steps import find_steps

DRAWING = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccddddddeeeeee
    python  #####.....#####.....##################....
    op      .....####......####......####...###...###.
"""
MS = 1_000_000


def test_they_are_not_part_of_the_recording() -> None:
    trace = drawn_trace(DRAWING, 1000, **{KEY: 3})
    steps = find_steps(trace)
    assert steps is not None
    assert (steps.durations / MS).tolist() == [10, 10, 10]
    assert len(trace.rows(Kind.CPU_OP)) == 3
    python = trace.rows(Kind.PYTHON)
    assert (trace.events.duration[python] / MS).tolist() == [5, 5, 10], "a frame that had not returned ends"


def test_their_operators_are_kept() -> None:
    stackless = drawn_trace(DRAWING, 1000, **{KEY: 3}).stackless
    assert stackless is not None
    assert ((stackless.edges[1:] - stackless.edges[:-1]) / MS).tolist() == [6, 6]
    assert (stackless.operators.duration[:] / MS).tolist() == [3, 3]
    assert set(stackless.operators.kind[:].tolist()) == {Kind.CPU_OP}


@pytest.mark.parametrize("count", [None, 0, -1, True, "3", 3.0, 5, 10**30, [3], {}])
def test_all_steps_count_if_their_number_is_not_plausible(count: object) -> None:
    trace = drawn_trace(DRAWING, 1000, **{KEY: count})
    assert trace.stackless is None
    assert len(trace.rows(Kind.CPU_OP)) == 5


def test_memory_of_later_steps_is_left_out() -> None:
    made = drawn(DRAWING, 1000, **{KEY: 3})
    arguments = {"Total Allocated": 8, "Bytes": 8, "Addr": 16, "Device Id": -1, "Device Type": 0}
    events = [
        {"ph": "i", "name": "[memory]", "pid": 100, "tid": 100, "ts": ts, "args": arguments}
        for ts in (8_000, 29_000, 31_000)
    ]
    assert len(loaded(made | {"traceEvents": made["traceEvents"] + events}).memory) == 2
