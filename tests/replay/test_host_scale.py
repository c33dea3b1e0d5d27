"""Profiler overhead: solved for if the step time without the profiler is known, otherwise estimated."""

import pytest
from helpers.drawn_graphs import drawn_graph
from helpers.simulated_graphs import simulated_graph
from simulate.workload import launch_bound

from tb_bottleneck.attribution.profiler_time import dispatch_time
from tb_bottleneck.replay.host_scale import (
    MAX_HOST_SLOWDOWN,
    SLOWDOWN_BESIDE_GPU,
    HostScale,
    host_scale_of,
    with_host_scale,
)
from tb_bottleneck.trace.kinds import Kind

# The host dispatches all the time: a step is as long as it takes.
LATE = """
    step    aaaaaaaaaabbbbbbbbbb
    op      ####################
    launch  ..|..|..|...|..|..|.
    gpu     ...#..#..#...#..#..#
"""


def scales(drawing: str, **context: float) -> HostScale:
    return host_scale_of(drawn_graph(drawing, tb_bottleneck={"context": context}))


def test_the_scale_is_solved_for_by_replaying(monkeypatch):
    """A step takes ten columns of 0.1 ms with the profiler and six without."""
    monkeypatch.setitem(
        dispatch_time.MAX_OVERHEAD_NS, Kind.CALL, 1_000_000
    )  # else the few calls drawn cannot have cost so much
    found = scales(LATE, unprofiled_step_ns=600_000)
    assert found.solved
    graph = with_host_scale(drawn_graph(LATE), found.expected)
    assert graph.window() / 2 == pytest.approx(600_000, rel=0.03)
    assert (found.least, found.most) == (found.expected, found.expected)


def test_an_interruption_is_not_taken_for_time_that_the_profiler_costs(monkeypatch):
    """The same steps, one of them 3 ms longer: the overhead of the median step is 40 % of 1 ms, not of the mean."""
    monkeypatch.setitem(dispatch_time.MAX_OVERHEAD_NS, Kind.CALL, 1_000_000)
    interrupted = """
        step    aaaaaaaaaabbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbccccccccccdddddddddd
        op      ##########..............................##############################
        launch  ..|..|..|.................................|..|..|...|..|..|...|..|..|.
        gpu     ...#..#..#.................................#..#..#...#..#..#...#..#..#
        save    ..........##############################..............................
    """
    found, usual = (scales(drawing, unprofiled_step_ns=600_000).expected for drawing in (interrupted, LATE))
    assert found == pytest.approx(usual, abs=0.05)


def test_other_programs_slow_a_cpu_run_as_a_whole():
    """The profiler's time is taken out of all times. What is left of the difference belongs to other programs."""
    drawing = """
        step    aaaaaaaaaabbbbbbbbbbcccccccccc
        python  #####.....#####.....#####.....
        op      .....####......####......####.
    """
    graph = drawn_graph(drawing, deviceProperties=[], tb_bottleneck={"context": {"unprofiled_step_ns": 300_000}})
    object.__setattr__(graph.base.recording, "correction", object())
    assert host_scale_of(graph) == HostScale(1.0, 1.0, 1.0, solved=True)


def test_what_recording_cannot_have_cost_is_a_difference_between_runs():
    """Three calls and an operator in a step of 1 ms: 0.04 ms of the 0.4 that it took longer."""
    assert scales(LATE, unprofiled_step_ns=600_000).expected == pytest.approx(0.96, abs=0.01)


def test_a_profiler_that_cost_nothing_leaves_the_host_alone():
    assert scales(LATE, unprofiled_step_ns=999_900).expected == 1.0


def test_without_an_unprofiled_time_bounds_reach_from_the_fastest_host_to_the_recorded_one():
    found = scales(LATE)
    assert not found.solved
    assert (found.least, found.most) == (1 / MAX_HOST_SLOWDOWN, 1.0)
    assert found.least <= found.expected <= found.most


def test_more_events_cost_more():
    """The same training with operators a third as long: a larger share of the host's time is profiler overhead."""
    calm, busy = (simulated_graph(launch_bound(3).but(operator_ns=ns)) for ns in (30_000, 10_000))
    assert host_scale_of(busy).expected < host_scale_of(calm).expected < 1


def test_on_the_cpu_work_is_not_taken_for_dispatching():
    found = scales("""
        step    aaaaaaaaaabbbbbbbbbb
        op      ####.#####.####.####
    """)
    assert found == HostScale(1.0, 1.0, 1.0, solved=False)


@pytest.mark.parametrize("word", ["soon", None, -1.0, [5]])
def test_a_context_that_holds_no_time_is_as_good_as_none(word):
    assert not scales(LATE, unprofiled_step_ns=word).solved


# The device works all the time, and the host is done with a step after half of it.
HIDDEN = """
    step    aaaaaaaaaabbbbbbbbbb
    op      #####.....#####.....
    launch  .|........|.........
    gpu     ..aaaaaaaaabbbbbbbbb
"""


def test_steps_that_the_device_limits_do_not_show_the_scale(monkeypatch):
    """The step is 0.3 % shorter without the profiler, which no other speed of the host explains."""
    monkeypatch.setitem(dispatch_time.MAX_OVERHEAD_NS, Kind.CALL, 1_000_000)
    found = scales(HIDDEN, unprofiled_step_ns=997_000)
    assert (found.expected, found.most, found.solved) == (1 / SLOWDOWN_BESIDE_GPU, 1.0, False)


def test_a_step_that_becomes_as_short_as_the_device_allows_keeps_the_slowest_such_host(monkeypatch):
    """The device works for six of ten columns: it limits the step from a scale of about 0.6 on."""
    monkeypatch.setitem(dispatch_time.MAX_OVERHEAD_NS, Kind.CALL, 1_000_000)
    drawing = """
        step    aaaaaaaaaabbbbbbbbbbcccccccccc
        op      ##############################
        launch  .........|.........|.........|
        gpu     ....######....######....######
    """
    found = scales(drawing, unprofiled_step_ns=500_000)
    assert found.expected > 1 / MAX_HOST_SLOWDOWN


# The device is busy all the time; the host dispatches a step in a part of it.
AHEAD = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    op      ######....######....######....
    launch  .....|.........|.........|....
    gpu     ......##########..########..##
"""


def test_the_pace_of_the_host_gives_the_scale_at_any_cost_of_the_profiler():
    """The host alone takes 1 ms per drawn step, and needed 0.4 to 0.6 ms where the device did not hold it back."""
    pace = {"host_pace_ns": [400_000.0, 500_000.0, 600_000.0], "unprofiled_step_ns": 990_000}
    graph = drawn_graph(LATE, tb_bottleneck={"context": pace})
    found = host_scale_of(graph)
    assert (found.pace > 0, found.hidden, found.solved) == (True, True, False)
    assert found.least <= found.expected <= found.most
    alone = with_host_scale(graph, found.expected).without_device()
    assert alone.window() / 2 == pytest.approx(500_000, rel=0.05)


@pytest.mark.parametrize(
    ("logged", "pace"),
    [
        ([0.1, 0.2, 0.3, 0.35] + [1.0] * 6, (0.1, 0.2, 0.3)),
        ([0.1, 0.35] + [1.0] * 6, ()),
        ([0.1, 0.2, 0.3, 0.35, 1.0], ()),
        ([1.0] * 8, ()),
        (["x", 0.5, 0.6], ()),
    ],
    ids=["three steps fill the queue", "one step", "too few others", "none", "no times"],
)
def test_logged_steps_that_fill_the_queue_give_the_pace_of_a_trace_alone(logged, pace):
    """The device works for most of a step of 1 ms."""
    times = [each * 1e6 if isinstance(each, float) else each for each in logged]
    context = {"unprofiled_step_times_ns": times, "unprofiled_step_ns": 1e6}
    graph = drawn_graph(AHEAD, tb_bottleneck={"context": context})
    assert graph.base.host_pace == tuple(each * 1e6 for each in pace)


@pytest.mark.parametrize("pace", [[], ["x", -1, True, None], "text", {"a": 1}])
def test_a_pace_that_is_no_list_of_times_is_not_used(pace):
    assert not scales(LATE, host_pace_ns=pace).pace


def test_a_faster_device_does_not_make_steps_shorter_than_the_host_needs():
    """The launches of the first step may lie before the window, so a replay alone has less of the host."""
    graph = drawn_graph(AHEAD, tb_bottleneck={"context": {"host_pace_ns": [700_000.0, 700_000.0]}})
    start = with_host_scale(graph, 1.0)
    instant = start.with_items(length=start.items.length // 100)
    assert start.paced
    assert instant.window() >= start.without_device().window()
