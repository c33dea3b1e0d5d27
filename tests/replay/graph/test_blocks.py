"""Steps over blocks give the same times as steps over items: on simulated trainings and on public recordings."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.simulated_recordings import simulated_recording
from helpers.slow_replay import slow_edges

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.errors import BottleneckError
from tb_bottleneck.replay.graph.blocks import LONGEST_BLOCK, layout_of
from tb_bottleneck.replay.graph.graph import graph_of
from tb_bottleneck.replay.graph.wait_targets import QUEUE
from tb_bottleneck.replay.simulator import replay
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

PUBLIC = sorted(Path(os.environ.get("TB_BOTTLENECK_TRACES", "/nonexistent")).glob("*.json.gz"))


@pytest.mark.parametrize("seed", range(40))
def test_blocks_are_items(seed):
    graph = graph_of(simulated_recording(seed))
    assert replay(graph, layout_of(graph)).edges.tolist() == slow_edges(graph)


@pytest.mark.parametrize("seed", range(10))
def test_blocks_equal_items_after_a_fix_too(seed):
    """Waits gone, kernels and host at other speeds: the blocks are cut once, for all of these."""
    graph = graph_of(simulated_recording(seed))
    rng = np.random.default_rng(seed)
    items = graph.items
    changed = replace(
        items,
        gap=items.gap.each(lambda column: (column * rng.uniform(0, 2, len(items))).astype(np.int64)),
        length=(items.length * rng.uniform(0, 2, len(items))).astype(np.int64),
        waits=np.where(rng.random(len(items)) < 0.5, -1, items.waits),
        after=np.where(rng.random(len(items)) < 0.5, -1, items.after),
    )
    assert replay(graph, layout_of(graph), changed).edges.tolist() == slow_edges(replace(graph, items=changed))


@pytest.mark.skipif(not PUBLIC, reason="TB_BOTTLENECK_TRACES names no folder of public traces")
@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.name)
def test_blocks_are_items_on_public_recordings(path):
    try:
        trace = load(str(path))
    except BottleneckError:
        pytest.skip("not a trace")
    steps = find_steps(trace)
    if steps is None or not len(trace.device_ops) or len(trace.device_ops) > QUEUE:
        pytest.skip("nothing to replay, or more than fills a launch queue")
    graph = graph_of(Recording(trace, steps))
    assert replay(graph, layout_of(graph)).edges.tolist() == slow_edges(graph)


def test_no_block_is_longer_than_the_queue_can_be_seen_to_fill():
    layout = layout_of(graph_of(simulated_recording(3)))
    assert (layout.last - layout.first).max() < LONGEST_BLOCK
