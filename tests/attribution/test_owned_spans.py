"""Tests the attribution: each test draws a training and checks the owners of its time.

Owned spans are disjoint, they cover the window, and the account is their sum.
"""

import ast
import os
from pathlib import Path

import numpy as np
import pytest
from helpers.draw import drawn_trace

from tb_bottleneck import attribution
from tb_bottleneck.attribution.host_activity import REGIME_OF_ACTIVITY, Activity
from tb_bottleneck.attribution.idle_gaps import LONGEST_DEVICE_PAUSE_NS
from tb_bottleneck.attribution.owned_spans import account_of
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load


def shares(drawing: str, unit_us: float = 1000.0, **header) -> dict[str, float]:
    trace = drawn_trace(drawing, unit_us, **header)
    steps = find_steps(trace)
    assert steps is not None
    account = Recording(trace, steps).account
    assert sum(account.ns.values()) == account.window
    return {regime: account.share(regime) for regime in REGIMES if account.share(regime) > 0.01}


def about(**expected: float):
    return pytest.approx(expected, abs=0.012)


def test_every_regime_can_own_time():
    """A regime that no module of the attribution for traces names has no time in any account."""
    trees = [ast.parse(path.read_text()) for path in Path(attribution.__path__[0]).glob("*.py")]
    attributes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    named = {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id == "Regime"}
    assert {Regime[name] for name in named} == set(REGIMES)


def test_a_loader_before_an_idle_device_is_input():
    account = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        loader  ####......####......
        gpu     ....######....######
    """)
    assert account == about(input=0.4, compute=0.6)


def test_a_loader_hidden_by_a_busy_device_costs_nothing():
    account = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        loader  .####......####.....
        launch  |.........|.........
        gpu     .ccccccccccddddddddd
    """)
    assert "input" not in account
    assert account["compute"] > 0.9


def test_dispatching_before_an_idle_device_is_launch():
    account = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        op      #####.....#####.....
        launch  ....|.........|.....
        gpu     .....aaaaa.....bbbbb
    """)
    assert account == about(launch=0.5, compute=0.5)


def test_python_without_any_operator_is_host():
    account = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        gpu     ......aaaa......bbbb
    """)
    assert account == about(host=0.6, compute=0.4)


def test_short_pauses_between_operators_belong_to_dispatching():
    account = shares(
        """
        step     aaaaaaaaaabbbbbbbbbb
        dispatch #.#.#.....#.#.#.....
        launch   ....|.........|.....
        gpu      .....aaaaa.....bbbbb
    """,
        unit_us=100.0,
    )
    assert account == about(launch=0.5, compute=0.5)


def test_a_checkpoint_is_an_interruption():
    account = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        save    .....#####..........
        launch  |.........|.........
        gpu     .aaaa......bbbbbbbbb
    """)
    assert account["interruption"] == pytest.approx(0.25, abs=0.012)


def test_driver_allocations_before_an_idle_device_are_the_allocators():
    account = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        malloc  .###.......###......
        launch  ....|.........|.....
        gpu     .....aaaaa.....bbbbb
    """)
    assert account["allocator"] == pytest.approx(0.3, abs=0.012)


def test_a_wait_over_a_busy_device_costs_nothing():
    account = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  ||........||........
        sync    ..#######...#######.
        gpu     .aaaabbbbbcccccddddd
    """)
    assert "sync" not in account
    assert account["compute"] > 0.9


def test_a_wait_that_drains_the_queue_owns_the_dispatching_after_it():
    """After each wait of 6 ms the queue is empty; the host then needs 4 ms to launch again."""
    account = shares("""
        step     aaaaaaaaaabbbbbbbbbb
        launch   |.........|.........
        sync     .######....######...
        dispatch .......###.......###
        gpu      .aaaaaa....bbbbbb...
    """)
    assert account["sync"] == pytest.approx(0.35, abs=0.012)  # 4 ms of the first step, 3 ms of the second


def test_a_wait_costs_no_more_than_it_lasted():
    """A wait of 1 ms cannot cause 7 ms of dispatching: a launch-bound loop stays launch-bound."""
    account = shares("""
        step     aaaaaaaaaabbbbbbbbbb
        dispatch ..#######...#######.
        sync     .#.........#........
        launch   .........|.........|
        gpu      ##........##........
    """)
    assert account["sync"] < 0.12
    assert account["launch"] > 0.5


def test_a_wait_before_an_interruption_does_not_own_the_dispatching_after_it():
    """Without the wait of 1 ms, the checkpoint and everything after it would begin 1 ms earlier: the dispatching gains
    nothing, so it keeps its owner."""
    account = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  |.........|.........
        sync    .#.........#........
        save    ...####......####...
        op      .......###.......###
        gpu     ##........##........
    """)
    assert "sync" not in account
    assert account["interruption"] == pytest.approx(0.4, abs=0.012)


def test_a_device_that_is_used_by_others_is_not_launch_overhead():
    """The launches have returned after 1 ms; the recording does not show why the kernels begin 4 ms later."""
    account = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  ....|.........|.....
        op      #####.....#####.....
        gpu     .........a.........b
    """)
    assert account == about(launch=0.5, unexplained=0.4, compute=0.1)


def test_the_time_that_a_synchronising_call_takes_anyway_is_no_wait():
    trace = drawn_trace(
        """
        step    aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbb
        launch  |...................|...................
        sync    .####................####...............
        gpu     .aaa.................bbb................
        """,
        unit_us=10.0,
    )
    waits = Recording(trace, find_steps(trace)).gaps.waits
    assert waits.length.tolist() == [36_000, 36_000]


def test_a_late_start_after_a_wait_is_a_cost_of_the_wait():
    """Each kernel starts three columns after its launch, on an empty queue. Without the waits, the next launch would be
    queued by then. It is not known why the first one is late: no wait is before it."""
    account = shares("""
        step    aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
        launch  .|.....|.....|.....|.....|.....|........
        sync    ..####..####..####..####..####..####....
        gpu     .....#.....#.....#.....#.....#.....#....
    """)
    assert account["sync"] > 0.35
    assert account["unexplained"] < 0.25, "three of six columns, less what is charged to the waits"


def test_only_exposed_collectives_count():
    account = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        gpu     aaaaaaa...bbbbbbb...
        nccl    .....nnnnn.....mmmmm
    """)
    assert account == about(communication=0.3, compute=0.7)


def test_copies_beside_kernels_are_free_and_exposed_ones_are_not():
    account = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        h2d     ##..##....##..##....
        gpu     ..aaaaaaaa..bbbbbbbb
    """)
    assert account == about(transfer=0.2, compute=0.8)


def test_kernels_of_one_block_are_underfilled_and_streaming_ones_memory():
    account = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        small   ssss......tttt......
        stream  ....uuuuuu....vvvvvv
    """)
    assert account == about(underfilled=0.4, memory=0.6)


def test_device_work_is_not_clipped_at_the_end_of_a_host_step():
    """The host finishes both steps after 8 ms, the device works for 20 ms: all of its work counts."""
    trace = drawn_trace(
        """
        step    aaaabbbb............
        launch  ||..................
        gpu     .aaaaaaaaaabbbbbbbbb
    """,
        1000.0,
    )
    steps = find_steps(trace)
    assert steps.end == 20_000_000
    assert Recording(trace, steps).account.share("compute") == pytest.approx(0.95, abs=0.01)


def test_an_account_that_does_not_sum_is_refused():
    with pytest.raises(ValueError, match="sum"):
        account_of(10, {"input": 9})


DRAWINGS = {
    "waits for data": """
        step    aaaaaaaaaabbbbbbbbbbcccccccccc
        loader  ####......####......####......
        gpu     ....aabbcc....aabbcc....aabbcc
    """,
    "waits": """
        step    aaaaaaaaaaaaaaabbbbbbbbbbbbbbb
        op      ##.............##.............
        launch  |.||...........|.||...........
        sync    ....####...........####.......
        gpu     .aa.bbb.........aa.bbb........
        d2h     .......#..............#.......
    """,
    "copies and collectives": """
        step    aaaaaaaaaaaaaaabbbbbbbbbbbbbbb
        op      ###............###............
        gpu     ...aaa.........bbb............
        nccl    ....nnnn.........nnnn.........
        h2d     ..........hh.............hh...
    """,
    "on the CPU": """
        step    aaaaaaaaaabbbbbbbbbb
        loader  ####......####......
        op      ....#####.....#####.
    """,
    "operators on the CPU that a loader interrupts": """
        step    aaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbccccccccccccccccccc
        loader ...##...............##...............##.............
        op    .########..####.###.########..####.###.########..####.###
    """,
}
PUBLIC = sorted(Path(os.environ.get("TB_BOTTLENECK_TRACES", "nowhere")).glob("*.json.gz"))


def recorded(trace):
    steps = find_steps(trace)
    return Recording(trace, steps) if steps is not None else None


def check(recording):
    spans, steps = recording.owned_spans, recording.steps
    assert (spans.end > spans.start).all()
    assert (spans.start[1:] >= spans.end[:-1]).all(), "spans overlap"
    assert steps.begin <= spans.start[0]
    assert spans.end[-1] <= steps.end
    assert (spans.end - spans.start).sum() == steps.end - steps.begin, "spans do not cover the window"
    assert {regime: spans.of(regime).total() for regime in REGIMES} == recording.account.ns
    if recording.on_device:
        assert by_gaps(recording) == recording.account.ns


def by_gaps(recording):
    """Returns the account of a device run, computed without spans: from the busy time and the columns of the gaps."""
    gaps = recording.gaps
    ns = {regime: recording.busy[regime].total() if regime in recording.busy else 0 for regime in REGIMES}
    for activity in Activity:
        known = activity is not Activity.OTHER or recording.host.recorded
        regime = REGIME_OF_ACTIVITY[activity] if known else Regime.UNEXPLAINED
        ns[regime] += int(gaps.by_activity.of(activity).sum())
    # Waits are charged with the dispatching and the latency of a gap first, then with its stall.
    charged = int(gaps.sync_bubble.sum())
    of_stalls = int(np.maximum(gaps.sync_bubble - gaps.by_activity.of(Activity.DISPATCH) - gaps.latency, 0).sum())
    ns[Regime.SYNC] += charged
    ns[Regime.LAUNCH] += int(gaps.latency.sum()) - (charged - of_stalls)
    ns[Regime.UNEXPLAINED] -= of_stalls
    pauses = int(gaps.queued[gaps.queued < LONGEST_DEVICE_PAUSE_NS].sum())
    ns[Regime.UNDERFILLED] += pauses
    ns[Regime.UNEXPLAINED] += int(gaps.queued.sum()) - pauses + int(gaps.stalled.sum())
    collectives = recording.account.ns[Regime.COMMUNICATION] - ns[Regime.COMMUNICATION]
    ns[Regime.COMMUNICATION] += collectives
    ns[Regime.HOST] -= collectives
    return ns


@pytest.mark.parametrize("name", DRAWINGS)
def test_spans_cover_the_window_without_overlap(name):
    check(recorded(drawn_trace(DRAWINGS[name])))


def test_spans_cover_the_time_in_which_their_owner_ran():
    """0 to 400 us the loader, then 600 us of kernels, in each step."""
    recording = recorded(drawn_trace(DRAWINGS["waits for data"]))
    waits = recording.owned_spans.of(Regime.INPUT)
    assert (waits.starts % 1_000_000 == 0).all()
    assert (waits.ends - waits.starts <= 400_000).all()
    assert int(waits.total()) == recording.account.ns[Regime.INPUT]
    assert waits.ends[-1] < recording.steps.end


def test_operators_that_a_loader_interrupts_keep_the_time_outside_it():
    """The loader runs inside the first operator of each step; the rest of the operator is compute."""
    recording = recorded(drawn_trace(DRAWINGS["operators on the CPU that a loader interrupts"], deviceProperties=[]))
    account = recording.account
    shares = {regime: round(account.share(regime), 3) for regime in REGIMES if account.ns[regime]}
    assert shares == {Regime.INPUT: 0.105, Regime.COMPUTE: 0.702, Regime.LAUNCH: 0.175, Regime.HOST: 0.018}


@pytest.mark.skipif(not PUBLIC, reason="TB_BOTTLENECK_TRACES names no directory of traces")
@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.name)
def test_on_public_recordings_too(path):
    recording = recorded(load(str(path)))
    if recording is None:
        pytest.skip("no steps were recorded")
    check(recording)


def test_each_steps_account_sums_to_the_step():
    recording = recorded(drawn_trace(DRAWINGS["waits for data"]))
    edges = recording.steps.edges
    owned = sum(recording.owned_spans.covered(edges[:-1], edges[1:]).values())
    assert np.array_equal(owned, recording.steps.durations)
