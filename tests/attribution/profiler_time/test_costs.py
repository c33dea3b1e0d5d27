"""What the profiler cost: facts of the process first, then the version of Python."""

import pytest
from helpers.draw import drawn_trace

from tb_bottleneck.attribution.profiler_time.costs import CostRange, costs_of
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
