"""The graph of drawn timelines: what follows what, and what the host did in between."""

from drawn_worlds import UNIT_NS, drawn_recording

from tb_bottleneck.measures.doing import Doing
from tb_bottleneck.replay.graph import graph_of
from tb_bottleneck.replay.links import LONG_AGO
from tb_bottleneck.replay.rows import NONE

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
    assert (items.gap[:, Doing.LOAD] / UNIT_NS).tolist() == [0, 6, 0, 6, 0]
    assert (items.length / UNIT_NS).tolist() == [0, 3, 0, 3, 0]
    assert items.latency[items.op < 0].max() == LONG_AGO


def test_gaps_costs_and_waits_make_up_the_hosts_time():
    graph = graph_of(drawn_recording(LOADED))
    assert int(graph.items.gap.sum() + graph.items.cost.sum()) == 20 * UNIT_NS


def test_the_streams_of_the_judged_device_are_named():
    graph = graph_of(drawn_recording(LOADED))
    assert graph.judged == (0,)
    assert set(graph.items.stream.tolist()) == {NONE, 0}
