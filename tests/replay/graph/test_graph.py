"""The graph of drawn timelines: what follows what, and what the host did in between."""

from dataclasses import replace

import numpy as np
from helpers.drawn_graphs import UNIT_NS, drawn_recording

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.replay.graph.device_dependencies import LONG_AGO
from tb_bottleneck.replay.graph.graph import HOSTLESS, graph_of
from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.steps import find_steps

LOADED = """
    step    aaaaaaaaaabbbbbbbbbb
    loader  ######....######....
    launch  ......|.........|...
    gpu     .......###.......###
"""


def test_items_are_a_chain_with_the_hosts_time_by_what_it_did():
    items = graph_of(drawn_recording(LOADED)).items
    assert items.mark.tolist() == [0, NONE, 1, NONE, 2]
    assert items.follows.tolist() == [NONE, 0, 1, 2, 3]
    assert (items.gap.of(Activity.LOAD_BATCH) / UNIT_NS).tolist() == [0, 6, 0, 6, 0]
    assert (items.length / UNIT_NS).tolist() == [0, 3, 0, 3, 0]
    assert items.latency[items.op < 0].max() == LONG_AGO


def test_gaps_costs_and_waits_make_up_the_hosts_time():
    graph = graph_of(drawn_recording(LOADED))
    assert int(graph.items.gap.total().sum() + graph.items.cost.sum()) == 20 * UNIT_NS


def test_the_streams_of_the_judged_device_are_named():
    graph = graph_of(drawn_recording(LOADED))
    assert graph.judged == (0,)
    assert set(graph.items.stream.tolist()) == {NONE, 0}


def without_calls(drawing: str) -> Recording:
    trace = drawn_recording(drawing).trace
    trace = replace(trace, events=trace.events.take(np.flatnonzero(trace.events.kind != Kind.CALL)))
    steps = find_steps(trace)
    assert steps is not None
    return Recording(trace, steps)


def test_a_recording_without_rows_of_the_host_is_a_chain_of_its_device_alone():
    """Kernels without runtime calls, and no steps: there were no rows to look anything up in."""
    items = graph_of(
        without_calls("""
            op      ##..##..##..
            gpu     .##..##..##.
        """)
    ).items
    assert items.follows.tolist() == [NONE, HOSTLESS, HOSTLESS]
    assert (items.length / UNIT_NS).tolist() == [2, 2, 2]


def test_a_host_that_makes_no_calls_waits_for_nothing():
    items = graph_of(without_calls(LOADED)).items
    assert items.mark[items.mark >= 0].tolist() == [0, 1, 2]
    assert items.waits.tolist() == [NONE] * len(items)
    assert not items.drains.any()
