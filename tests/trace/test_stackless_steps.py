"""Steps that were recorded without stacks, after those with stacks."""

from itertools import pairwise

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


@pytest.mark.parametrize(
    ("step", "op", "whole"),
    [
        ("aaabbbcccddd", "##.##.##.##.", [3, 3]),
        ("aaabbbcccd", "##.##.##..", [3]),
        ("aaabbbc", "##.##..", []),
        ("aaabbbcc", "#=.#=.#.", []),
    ],
)
def test_a_step_in_which_the_training_ended_does_not_count(step: str, op: str, whole: list[int]) -> None:
    """It would be the time of a step in the report. `#=` are two operators: the last step has one of them."""
    trace = drawn_trace(f"step {step}\nop {op}", 1000, **{KEY: 2})
    edges = [] if trace.stackless is None else trace.stackless.edges
    assert [later - earlier for earlier, later in pairwise(edges)] == [length * MS for length in whole]
    steps = find_steps(trace)
    assert steps is not None
    assert len(steps) == 2, "what has no stacks is cut off in any case"


def test_a_mark_that_is_there_twice_makes_no_step_of_no_time() -> None:
    made = drawn(DRAWING, 1000, **{KEY: 3})
    marks = [event for event in made["traceEvents"] if event["name"].startswith("ProfilerStep#")]
    stackless = loaded(made | {"traceEvents": made["traceEvents"] + marks[-1:] * 3}).stackless
    assert stackless is None or (stackless.edges[1:] > stackless.edges[:-1]).all()


def test_memory_of_later_steps_is_left_out() -> None:
    made = drawn(DRAWING, 1000, **{KEY: 3})
    arguments = {"Total Allocated": 8, "Bytes": 8, "Addr": 16, "Device Id": -1, "Device Type": 0}
    events = [
        {"ph": "i", "name": "[memory]", "pid": 100, "tid": 100, "ts": ts, "args": arguments}
        for ts in (8_000, 29_000, 31_000)
    ]
    assert len(loaded(made | {"traceEvents": made["traceEvents"] + events}).memory) == 2
