"""Tests of the interval of a gain: independent sources of error, each of which moves one bound or both.

A simulated gain cannot make the mean step shorter than the steps without the cause.
"""

from math import exp, hypot, log

import pytest
from helpers import draw
from helpers.drawn_graphs import drawn_graph

from tb_bottleneck.base.deviations import HOST_DRIFT, QUANTILE, RUN_TO_RUN_NOISE
from tb_bottleneck.bottlenecks.host.fixes import WITHOUT_PYTHON
from tb_bottleneck.bottlenecks.input.fixes import WORKERS as LOADER
from tb_bottleneck.bottlenecks.sync.fixes import WAITS
from tb_bottleneck.measures.trace.window_rows import launches_without_work
from tb_bottleneck.replay import gain as module
from tb_bottleneck.replay.gain import gain_in_part, gain_of, shortest_window, without_fixes
from tb_bottleneck.replay.host_scale import HostScale
from tb_bottleneck.replay.modified_graph import Estimate

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


def gained(drawing, scenario, host_scale=KNOWN):
    before = without_fixes(drawn_graph(drawing), host_scale)
    after = before.with_fix(scenario)
    assert after is not None
    return gain_of(before, after)


def above(found):
    return log(found.high / found.expected)


def below(found):
    return log(found.expected / found.low)


def test_a_fix_may_take_effect_in_part():
    found = gained(WAITING, WAITS)
    assert found.expected > 1.1
    assert found.low < gain_in_part(found.expected) < found.expected


def test_a_larger_saving_comes_more_completely():
    """The share of the saving that a fix brings at least: most of it where it saves most of the step."""
    shares = [(1 - 1 / gain_in_part(gain)) / (1 - 1 / gain) for gain in (1.1, 2.0, 10.0)]
    assert shares == sorted(shares)
    assert shares[0] < 0.65
    assert shares[-1] > 0.85


def test_what_was_recorded_once_may_be_rare_in_the_run():
    once, twice = gained(ONCE, LOADER), gained(TWICE, LOADER)
    assert once.expected > 1.2
    assert once.low < 1 + 0.1 * (once.expected - 1)
    assert twice.low > 1 + 0.3 * (twice.expected - 1)


def test_lost_kernels_may_need_a_part_of_the_time_that_a_fix_saves(monkeypatch):
    """One launch of three has no kernel in the recording."""
    monkeypatch.setitem(draw.HOST_ROWS, "lost", ("cuda_runtime", "cudaLaunchKernel"))
    drawing = """
        step   aaaaaaaaaabbbbbbbbbbcccccccccc
        launch .|..|......|..|......|..|.....
        gpu    ..#..#......#..#......#..#....
    """
    gains = []
    for row in ("..............................", "..............|.........|....."):
        before = without_fixes(drawn_graph(f"{drawing}    lost   {row}"), KNOWN)
        after = before.with_fix(WITHOUT_PYTHON)
        assert after is not None
        gains.append(gain_of(before, after))
        lost = launches_without_work(before.expected.base.recording.trace, before.expected.base.recording.steps)
    assert lost == pytest.approx(1 / 3)
    assert gains[1].expected == pytest.approx(gains[0].expected * (1 - lost), rel=0.05)


def test_the_next_host_matters_only_where_the_host_limits_the_step():
    assert above(gained(WAITING, WAITS)) == pytest.approx(RUN_TO_RUN_NOISE, abs=0.01), "the device limits it"
    on_host = above(gained(LOADING, LOADER))
    assert on_host > 0.5 * QUANTILE * HOST_DRIFT
    assert on_host <= hypot(QUANTILE * HOST_DRIFT, RUN_TO_RUN_NOISE, log(1.075)) + 0.01, "and the workers slow it"


def test_independent_errors_add_up_by_their_squares(monkeypatch):
    both = above(gained(LOADING, LOADER))
    monkeypatch.setattr(module, "RUN_TO_RUN_NOISE", 0.0)
    host = above(gained(LOADING, LOADER))
    monkeypatch.setattr(module, "HOST_DRIFTS", (1.0, 1.0))
    fix = above(gained(LOADING, LOADER))
    assert both == pytest.approx(hypot(host, RUN_TO_RUN_NOISE))
    assert fix < host < both < host + RUN_TO_RUN_NOISE


def test_an_unknown_overhead_of_the_profiler_widens_the_interval():
    known, unknown = (
        gained(LOADING, LOADER),
        gained(LOADING, LOADER, HostScale(1.0, 0.5, 1.0, solved=False)),
    )
    assert unknown.expected == known.expected
    assert above(unknown) > above(known)
    assert below(unknown) >= below(known)


def test_a_gain_is_at_least_one():
    nothing = gained(LOADING, WAITS)
    assert (nothing.expected, nothing.low) == (1.0, 1.0)
    assert nothing.high <= exp(hypot(QUANTILE * HOST_DRIFT, RUN_TO_RUN_NOISE)) + 0.01
