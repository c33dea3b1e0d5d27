"""Runs on the CPU: the host's thread is the device, and the graph is what it did in each step."""

import pytest
from helpers.drawn_graphs import after_fix, columns, drawn_graph

from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.replay.plan import predict
from tb_bottleneck.replay.scenarios import interruptions, loader

ON_CPU = """
    step    aaaaaaaaaabbbbbbbbbb
    loader  ####......####......
    op      ....######....####..
    save    ..................##
"""


def test_the_recorded_time_comes_back():
    graph = drawn_graph(ON_CPU)
    assert columns(graph) == 20
    assert graph.base.check.trusted
    assert graph.base.check.error == 0


def test_a_loader_in_workers_leaves_taking_a_batch():
    """Four columns become one, twice; one worker would do: it makes two batches in eight columns."""
    assert after_fix(drawn_graph(ON_CPU), loader.SCENARIO) == 14


def test_what_needs_device_work_is_not_predicted():
    """A collective of a CPU run is host time like any other: the graph does not know it."""
    recording = drawn_graph(ON_CPU).base.recording
    assert set(predict(recording, ["exposed_collectives", "checkpointing"]).gains) == {"checkpointing"}


def test_a_checkpoint_that_comes_seldom_leaves_next_to_nothing():
    assert after_fix(drawn_graph(ON_CPU), interruptions.CHECKPOINTS) == pytest.approx(18, abs=0.05)
    assert after_fix(drawn_graph(ON_CPU), interruptions.CHECKPOINTS, Estimate.HIGH) == 18
