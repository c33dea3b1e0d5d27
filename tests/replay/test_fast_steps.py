"""A simulated gain cannot make the mean step shorter than the steps without the cause."""

from math import exp, hypot

import pytest
from helpers.drawn_graphs import drawn_graph

from tb_bottleneck.replay.gain import gain_of, shortest_window, without_fixes
from tb_bottleneck.replay.host_scale import HostScale
from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.replay.scenarios.host import WITHOUT_PYTHON
from tb_bottleneck.replay.validation import HOST_DRIFT, QUANTILE

KNOWN = HostScale(1.0, 1.0, 1.0, solved=True)
# Two steps pause for long and have little work; the others work all the time. Each row is a step.
WORKS, PAUSES = ("aaaabbbbc", "|..||...."), (".................#", "................|.")
SOME, ALL = "wpwwpww", "ppppppp"


def graph(order):
    steps = [WORKS if letter == "w" else PAUSES for letter in order]
    gpu, launch = ("".join(parts) for parts in zip(*steps, strict=True))
    step = "".join(chr(ord("a") + number) * len(parts[0]) for number, parts in enumerate(steps))
    return drawn_graph(f"step   {step}\nlaunch {launch}\ngpu    {gpu}")


def gain(order):
    before = without_fixes(graph(order), KNOWN)
    after = before.with_fix(WITHOUT_PYTHON)
    assert after is not None
    return before, after, gain_of(before, after)


def test_the_steps_that_the_fix_leaves_as_they_are_limit_its_gain():
    before, after, found = gain(SOME)
    limit = shortest_window(before.expected, after.fix[1])
    assert limit > after.expected.window(), "the simulation alone promises more"
    assert found.expected == pytest.approx(before.expected.window() / limit)
    faster = exp(QUANTILE * hypot(HOST_DRIFT, 0.02))
    assert found.high <= found.expected * faster * 1.001, "only the next host may be faster"


def test_a_fix_of_all_steps_is_not_limited():
    before, after, found = gain(ALL)
    assert shortest_window(before.expected, after.fix[1]) == 0
    assert found.expected == pytest.approx(before.expected.window() / after.expected.window())


def test_a_fix_that_changes_nothing_is_not_limited():
    works = graph("wwwwwww")
    fixed = WITHOUT_PYTHON.apply(works, Estimate.HIGH)
    assert shortest_window(works, fixed) == 0
