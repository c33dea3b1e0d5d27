"""The check of the unmodified replay, and when it forbids predictions."""

import pytest
from helpers.drawn_graphs import UNIT_NS, columns, drawn_graph, drawn_recording
from helpers.simulated_recordings import simulated_recording

from tb_bottleneck.replay.recorded_graph import RecordedGraph
from tb_bottleneck.replay.simulator import MAX_FROZEN_SHARE, MAX_REPLAY_ERROR, Check

EXPLAINED = """
    step    aaaaaaaaaabbbbbbbbbb
    launch  |.........|.........
    gpu     .####......####.....
"""
STALLED = """
    step    aaaaaaaaaabbbbbbbbbb
    launch  ||........||........
    gpu     .##....##..##....##.
"""


def test_a_recording_that_is_explained_is_trusted():
    check = RecordedGraph(drawn_recording(EXPLAINED)).check
    assert check == Check(error=0.0, frozen_share=0.0)
    assert check.trusted


def test_pauses_that_nothing_explains_are_frozen():
    """Eight of twenty columns are pauses before kernels that had long been launched."""
    check = RecordedGraph(drawn_recording(STALLED)).check
    assert check.frozen_share == pytest.approx(8 / 20, abs=0.01)
    assert not check.trusted


def test_a_window_without_marks_starts_with_the_fetch_of_its_batch():
    """The fetch was in the recorded time and not in the replayed one, so nothing was predicted."""
    fetched = """
        loader  ######..............
        launch  ......|.............
        gpu     .......#############
    """
    assert RecordedGraph(drawn_recording(fetched)).check == Check(error=0.0, frozen_share=0.0)


LEFT_OVER = """
    step    aa....................
    launch  x|....................
    gpu     ..#####bbbbbbbbbbbbbbb
"""


def test_work_from_before_the_recording_is_not_part_of_the_first_step():
    """The step has 15 columns of work; the device was busy with other work before."""
    recording = drawn_recording(LEFT_OVER)
    assert recording.steps.durations.tolist() == [15 * UNIT_NS]
    graph = drawn_graph(LEFT_OVER)
    assert graph.base.check == Check(error=0.0, frozen_share=0.0)
    assert columns(graph.with_items(length=graph.items.length // 5)) == pytest.approx(3, abs=0.1)


def test_the_limits_themselves_are_trusted():
    assert Check(MAX_REPLAY_ERROR, MAX_FROZEN_SHARE).trusted
    assert not Check(MAX_REPLAY_ERROR + 1e-6, 0.0).trusted
    assert not Check(0.0, MAX_FROZEN_SHARE + 1e-6).trusted


@pytest.mark.parametrize("seed", range(200, 220))
def test_usual_latencies_bring_the_recorded_time_back(seed):
    """The target is 1 % for sound recordings, such as simulated ones."""
    assert RecordedGraph(simulated_recording(seed)).check.error < 0.01
