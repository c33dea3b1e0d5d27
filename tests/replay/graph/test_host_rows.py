"""The calls that get a row, and the row that each follows, on drawn and simulated recordings."""

import numpy as np
from helpers.drawn_graphs import columns, drawn_graph, drawn_recording
from helpers.simulated_recordings import simulated_recording

from tb_bottleneck.replay.graph.host_rows import NONE, HostRows, _predecessors, host_rows


def rows_of(drawing: str) -> HostRows:
    recording = drawn_recording(drawing)
    return host_rows(recording.trace, recording.steps, recording.host.main_thread or 0)


def test_a_thread_is_a_chain_of_marks_and_calls():
    rows = rows_of("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  |.........|.........
        gpu     .####......####.....
    """)
    assert rows.mark.tolist() == [0, NONE, 1, NONE, 2], "a step begins before the call that begins with it"
    assert rows.follows.tolist() == [NONE, 0, 1, 2, 3]


def test_a_thread_that_was_idle_was_handed_over_to():
    """Thread 0 launches, thread 1 goes on for a while, and thread 0 takes over again; all times in us."""
    start, end = np.array([0, 10, 300, 600]) * 1000, np.array([5, 20, 310, 610]) * 1000
    thread = np.array([0, 0, 1, 0])
    assert _predecessors(start, end, thread).tolist() == [NONE, 0, 1, 2]


def test_threads_that_both_keep_going_follow_themselves():
    start = np.arange(8) * 10_000
    thread = np.array([0, 1] * 4)
    assert _predecessors(start, start + 4_000, thread).tolist() == [NONE, 0, 0, 1, 2, 3, 4, 5]


ENDS_IN_BACKWARD = """
    step      aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbb
    op        ##..................##..................
    launch    ||../...............||../...............
    gpu       .#############.####..#############.####.
    backward  ...###############.....###############..
    wait      .....###########.......###########......
"""


def test_a_step_that_ends_in_backward_follows_the_thread_of_autograd():
    """The first thread waits inside of backward(). Its wait was host time of its own, which no faster device ends."""
    rows = rows_of(ENDS_IN_BACKWARD)
    last = int(np.flatnonzero(rows.mark == 2)[0])
    assert rows.thread[rows.follows[last]] != rows.thread[last]
    graph = drawn_graph(ENDS_IN_BACKWARD)
    items = graph.items
    assert columns(graph.with_items(length=items.length // 2)) < 0.75 * columns(graph)


def test_watchdogs_take_no_part():
    """A simulated recording with noise: the watchdog's queries and the pinning thread's allocations."""
    recording = next(
        found
        for found in map(simulated_recording, range(100))
        if any("EventQuery" in name for name in found.trace.names)
    )
    rows = host_rows(recording.trace, recording.steps, recording.host.main_thread or 0)
    names = {recording.trace.names[recording.trace.calls.name[call]] for call in rows.call[rows.call >= 0].tolist()}
    assert not any("EventQuery" in name or "HostAlloc" in name for name in names)
    assert any("Launch" in name for name in names)
