"""The interval of a gain: independent sources of error, each of which moves one bound or both."""

from math import exp, hypot, log

import pytest
from helpers.drawn_graphs import drawn_graph

from tb_bottleneck.replay import gain as module
from tb_bottleneck.replay.gain import PARTIAL_EFFECT, gain_of, without_fixes
from tb_bottleneck.replay.host_scale import HostScale
from tb_bottleneck.replay.scenarios.loader import WORKERS as LOADER
from tb_bottleneck.replay.scenarios.waits import WAITS
from tb_bottleneck.replay.validation import HOST_DRIFT, QUANTILE, RUN_TO_RUN_NOISE

ONCE = """
    step    aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbb
    loader  ############........#...................
    op      ............#####....#####..............
    launch  ............|........|..................
    gpu     .............#........#.................
"""
TWICE = """
    step    aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbb
    loader  ############........############........
    op      ............#####...............#####...
    launch  ............|...................|.......
    gpu     .............#...................#......
"""

KNOWN = HostScale(1.0, 1.0, 1.0, solved=True)
# The host waits for each kernel before it launches the next; without waits, the device alone determines the time.
WAITING = """
    step    aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbb
    launch  |.......|.......|.......|.......
    sync    .######..######..######..######.
    gpu     .######..######..######..######.
"""
# Batches are made in the loop: afterwards, the host's dispatching determines the time.
LOADING = """
    step    aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbb
    loader  ####................####................
    op      ....#############.......#############...
    launch  ....|...................|...............
    gpu     .....#...................#..............
"""


def gain(drawing, scenario, host_scale=KNOWN):
    before = without_fixes(drawn_graph(drawing), host_scale)
    after = before.with_fix(scenario)
    assert after is not None
    return gain_of(before, after)


def above(found):
    return log(found.high / found.expected)


def below(found):
    return log(found.expected / found.low)


def test_a_fix_may_take_effect_in_part():
    found = gain(WAITING, WAITS)
    assert found.expected > 1.1
    partial = 1 / (1 - PARTIAL_EFFECT + PARTIAL_EFFECT / found.expected)
    assert found.low < partial < found.expected


def test_what_was_recorded_once_may_be_rare_in_the_run():
    once, twice = gain(ONCE, LOADER), gain(TWICE, LOADER)
    assert once.expected > 1.2
    assert once.low < 1 + 0.1 * (once.expected - 1)
    assert twice.low > 1 + 0.3 * (twice.expected - 1)


def test_the_next_host_matters_only_where_the_host_limits_the_step():
    assert above(gain(WAITING, WAITS)) == pytest.approx(RUN_TO_RUN_NOISE, abs=0.01), "the device limits it"
    on_host = above(gain(LOADING, LOADER))
    assert on_host > 0.5 * QUANTILE * HOST_DRIFT
    assert on_host <= hypot(QUANTILE * HOST_DRIFT, RUN_TO_RUN_NOISE, log(1.075)) + 0.01, "and the workers slow it"


def test_independent_errors_add_up_by_their_squares(monkeypatch):
    both = above(gain(LOADING, LOADER))
    monkeypatch.setattr(module, "RUN_TO_RUN_NOISE", 0.0)
    host = above(gain(LOADING, LOADER))
    monkeypatch.setattr(module, "HOST_DRIFTS", (1.0, 1.0))
    fix = above(gain(LOADING, LOADER))
    assert both == pytest.approx(hypot(host, RUN_TO_RUN_NOISE))
    assert fix < host < both < host + RUN_TO_RUN_NOISE


def test_an_unknown_overhead_of_the_profiler_widens_the_interval():
    known, unknown = gain(LOADING, LOADER), gain(LOADING, LOADER, HostScale(1.0, 0.5, 1.0, solved=False))
    assert unknown.expected == known.expected
    assert above(unknown) > above(known)
    assert below(unknown) >= below(known)


def test_a_gain_is_at_least_one():
    nothing = gain(LOADING, WAITS)
    assert (nothing.expected, nothing.low) == (1.0, 1.0)
    assert nothing.high <= exp(hypot(QUANTILE * HOST_DRIFT, RUN_TO_RUN_NOISE)) + 0.01
