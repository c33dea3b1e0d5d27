"""Tests the costs of the profiler, from facts of the process or the version of Python, and times without them."""

import numpy as np
import pytest
from helpers.draw import drawn_trace
from hypothesis import given
from hypothesis import strategies as st

from tb_bottleneck.attribution.profiler_time.costs import CostRange, costs_of
from tb_bottleneck.attribution.profiler_time.time_map import time_map
from tb_bottleneck.knowledge.measured import python_costs

FACTS = {
    "python_slowdown": 2.5,
    "python_call_ns": 120.0,
    "c_call_ns": 90.0,
    "operator_ns": 2400.0,
    "operator_without_stacks_ns": 2000.0,
}
WITH_STACKS = """
    step    aaaaaaaaaa
    python  #####.....
    op      ......###.
"""
WITHOUT_STACKS = """
    step    aaaaaaaaaa
    op      ......###.
"""


def costs(drawing: str = WITH_STACKS, **context: object):
    return costs_of(drawn_trace(drawing, tb_bottleneck={"context": context}))


def test_the_process_measured_them() -> None:
    found = costs(profiler_costs=FACTS, python="3.11.7")
    assert found.measured
    assert found.version == "3.11"
    assert (found.slowdown.least, found.slowdown.usual) == (1.0, 2.5)
    assert found.slowdown.most > 2.5
    assert (found.python_call.usual, found.c_call.usual) == (120, 90)
    assert (found.operator.least, found.operator.usual, found.operator.most) == pytest.approx((480, 960, 2400))


def test_without_stacks_only_operators_cost_time() -> None:
    found = costs(WITHOUT_STACKS, profiler_costs=FACTS)
    assert (found.slowdown.most, found.python_call.most, found.operator.usual) == (1.0, 0.0, pytest.approx(800))


@pytest.mark.parametrize("wrong", [{"python_slowdown": "x"}, {"c_call_ns": 1e9}, {"operator_ns": float("inf")}, None])
def test_wrong_facts_are_not_used(wrong: dict[str, object] | None) -> None:
    facts = None if wrong is None else FACTS | wrong
    assert costs(profiler_costs=facts) is None
    assert not costs(profiler_costs=facts, python="3.10.2").measured


@pytest.mark.parametrize("entry", python_costs(), ids=lambda entry: entry.version)
def test_each_known_version_has_its_costs(entry) -> None:
    found = costs(python=f"{entry.version}.4")
    assert not found.measured
    assert found.slowdown.usual == entry.slowdown[1]
    assert found.c_call.usual == entry.c_call_ns


def test_an_unknown_version_has_none() -> None:
    assert costs(python="2.7") is None
    assert costs() is None


@pytest.mark.parametrize(
    ("frame", "version"),
    [
        ("threading.py(973): _bootstrap", "3.10"),
        ("threading.py(1002): _bootstrap", "3.11"),
        ("threading.py(1032): _bootstrap", "3.12"),
        ("threading.py(1012): _bootstrap", "3.13"),
        ("/usr/lib/python3.11/queue.py(154): get", "3.11"),
        ("threading.py(5): _bootstrap", None),
        ("my/threading.py(1002): _bootstrap", None),
    ],
)
def test_frames_show_the_version(frame: str, version: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("helpers.draw").draw.HOST_ROWS, "python", ("python_function", frame))
    found = costs()
    assert (found and found.version) == version


def test_a_range_goes_from_the_least_cost_to_the_most() -> None:
    cost = CostRange(1.0, 2.0, 4.0)
    assert [cost.at(position) for position in (-1, -0.5, 0, 0.5, 1)] == [1.0, 1.5, 2.0, 3.0, 4.0]


SINCE_1970 = 1_795_600_000_000_000_000


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize("base", [0, SINCE_1970])
def test_later_times_move_forward_by_what_was_removed(base: int) -> None:
    mapped = time_map(ints(100, 300) + base, ints(200, 400) + base, np.array([50.0, 90.0]))
    recorded = ints(0, 100, 150, 200, 250, 300, 350, 400, 1000) + base
    assert (mapped.without(recorded) - base).tolist() == [0, 100, 125, 150, 200, 250, 255, 260, 860]


def test_without_spans_nothing_moves() -> None:
    none = np.empty(0, np.int64)
    assert time_map(none, none, np.empty(0)).without(ints(1, 2)).tolist() == [1, 2]


@given(st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 1000), st.floats(0, 0.95)), min_size=1, max_size=30))
def test_the_order_of_times_stays(spans: list[tuple[int, int, float]]) -> None:
    edges = np.cumsum([length for pause, inside, _ in spans for length in (pause, inside)])
    removed = np.array([part * inside for _, inside, part in spans])
    mapped = time_map(edges[::2], edges[1::2], removed)
    times = np.arange(0, edges[-1] + 5)
    without = mapped.without(times)
    assert (np.diff(without) >= 0).all()
    assert without[-1] == pytest.approx(times[-1] - removed.sum(), abs=1)
