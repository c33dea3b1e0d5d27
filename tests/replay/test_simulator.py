"""The simulator on drawn timelines with a replay worked out by hand, and on simulated recordings."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.drawn_graphs import UNIT_NS, drawn_recording
from helpers.simulated_recordings import simulated_recording

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.idle_gaps import times_of
from tb_bottleneck.replay.graph.blocks import layout_of
from tb_bottleneck.replay.graph.graph import Graph, graph_of
from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.replay.graph.wait_targets import QUEUE
from tb_bottleneck.replay.simulator import replay

SYNCED = """
    step    aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbb
    launch  |.......|.......|.......|.......
    sync    .######..........######.........
    gpu     .######..######..######..######.
"""


def edges(graph: Graph, **changes: object) -> list[float]:
    """The edges of the steps in columns, from the first one on."""
    found = replay(graph, layout_of(graph), replace(graph.items, **changes)).edges
    return [round((edge - found[0]) / UNIT_NS, 2) for edge in found.tolist()]


def test_unmodified_it_is_as_recorded():
    assert edges(graph_of(drawn_recording(SYNCED))) == [0, 16, 32]


def test_a_host_that_does_not_wait_runs_ahead_until_the_device_is_the_limit():
    """What comes of it, by hand; a wait that need not wait takes 0.04 columns:

    launch  |.|....|..          the second call of a step follows the first by two columns instead of eight,
    gpu     .aaaaaabbbbbb       and its kernel begins when the first one ends: at 7, and ends at 13

    The host ends its step at 10.04, the device at 13. The next step's first call comes at 10.04 and its kernels queue
    up behind: 13 to 19 and 19 to 25.
    """
    graph = graph_of(drawn_recording(SYNCED))
    no_waits = np.full(len(graph.items), NONE)
    assert edges(graph, waits=no_waits) == [0, 13, 25]


def test_a_host_twice_as_fast_leaves_a_device_that_works_all_the_time_alone():
    graph = graph_of(
        drawn_recording("""
            step    aaaaaaaaaabbbbbbbbbb
            launch  ||.................|
            gpu     .aaaaaaaaaabbbbbbbbb
        """)
    )
    assert edges(graph)[-1] == edges(graph, gap=graph.items.gap.each(lambda column: column // 2))[-1]


def test_kernels_that_take_no_time_leave_a_host_that_is_late_alone():
    graph = graph_of(
        drawn_recording("""
            step    aaaaaaaaaabbbbbbbbbb
            launch  |....|....|....|....
            gpu     .#....#....#....#...
        """)
    )
    assert edges(graph, length=graph.items.length * 0) == edges(graph)


@pytest.mark.parametrize("seed", range(100, 130))
def test_a_simulated_training_is_replayed_exactly(seed):
    recording = simulated_recording(seed)
    graph = graph_of(recording)
    assert replay(graph, layout_of(graph)).edges.tolist() == recording.steps.edges.tolist()


def test_a_full_queue_holds_the_host_back():
    """Far more kernels than a queue holds, launched by a host that needs no time: it ends shortly before they do."""
    count, length = 3 * QUEUE, 1_000
    graph = _row_of_launches(count, length)
    found = replay(graph, layout_of(graph))
    assert found.window == count * length
    assert max(found.host) == pytest.approx((count - QUEUE) * length, abs=2 * 64 * length)


def _row_of_launches(count: int, length: int) -> Graph:
    pattern = graph_of(drawn_recording(SYNCED))
    many = np.zeros(count, np.int64)
    items = pattern.items.take(np.full(count, int(np.flatnonzero(pattern.items.op >= 0)[0])))
    changed = replace(
        items,
        follows=np.arange(count) - 1,
        gap=times_of([many] * len(Activity)),
        cost=many,
        waits=many - 1,
        length=many + length,
        pause=many,
        latency=many,
        at=many,
    )
    return Graph(changed, 0, (0,), np.array([0, count * length]))
