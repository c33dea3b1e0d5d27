"""Why each operation began when it did, on drawn timelines."""

from dataclasses import fields, replace

import numpy as np
from helpers.draw import dependency, drawn, drawn_trace, loaded

from tb_bottleneck.replay.graph.device_dependencies import LONG_AGO, DeviceDependencies, find_device_dependencies
from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.trace.events import Events
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.trace import Trace

US = 1000


def links(drawing: str, unit_us: float = 10.0) -> DeviceDependencies:
    return find_device_dependencies(drawn_trace(drawing, unit_us))


def test_a_free_stream_waits_for_the_launch():
    found = links("""
        launch  |.....|.....
        gpu     ..##....##..
    """)
    assert (found.issue + found.latency).tolist() == [20 * US, 80 * US], "that is when they began"
    assert found.frozen.tolist() == [0, 0]


def test_a_queued_operation_waits_for_its_stream():
    found = links("""
        launch  ||............
        gpu     .aaaaaaabbbbb.
    """)
    assert found.pause.tolist()[1] == 0
    assert found.latency[1] <= found.latency[0], "its launch came long before: the least latency is all it needs"
    assert found.frozen.tolist() == [0, 0]


def test_what_begins_as_another_stream_ends_waited_for_it():
    found = links("""
        launch  ||.|............
        gpu     ..aaa......bbb..
        nccl    ...########.....
    """)
    after = found.after.tolist()
    assert after[:2] == [NONE, NONE]
    assert after[2] == 1, "the collective is the second operation by begin"
    assert found.lag[2] == 0
    assert found.frozen.tolist() == [0, 0, 0]


def test_a_pause_without_a_reason_is_frozen():
    found = links("""
        launch  ||..............
        gpu     .aaa.......bbb..
    """)
    assert found.frozen.tolist() == [0, 70 * US]
    assert found.pause.tolist()[1] == 70 * US, "a replay leaves it as it is"


def test_a_latency_that_no_launch_takes_is_frozen():
    found = links("""
        launch  |...............
        gpu     ...........bbb..
    """)
    assert found.frozen.tolist() == [(110 - 10 - 8) * US], "from the return of the call, less a launch's usual 8 us"


def test_an_operation_without_a_launch_knows_no_latency():
    trace = drawn_trace("""
        launch  |......
        gpu     .###...
    """)
    unlinked = replace(trace, events=trace.events.take(trace.events.kind == Kind.KERNEL))
    assert find_device_dependencies(unlinked).latency.tolist() == [LONG_AGO]


def test_a_stream_that_was_made_to_wait_depends_on_what_was_launched_elsewhere_before():
    """The collective was over long before the second kernel was launched: it held nothing up, but it could have."""
    trace = drawn_trace(
        """
        launch  ||..........|...
        gpu     .##..........##.
        nccl    ...####.........
        """,
        10.0,
    )
    assert find_device_dependencies(trace).after.tolist() == [NONE, NONE, NONE]
    assert find_device_dependencies(with_call(trace, "cudaStreamWaitEvent", 100 * US)).after.tolist() == [NONE, NONE, 1]


def of_three_streams(flows: bool) -> Trace:
    """The fill on a third stream ended just before the second kernel began, which waited for the collective."""
    trace = drawn(
        """
        launch  ||||..............
        gpu     .aaa........bbb...
        nccl    ..#########.......
        small   ...........#......
        """,
        10.0,
    )
    first, collective, fill, second = (event for event in trace["traceEvents"] if event.get("cat") == "kernel")
    fill["tid"] = fill["args"]["stream"] = 30
    if flows:
        trace["traceEvents"] += [*dependency(0, collective, second), *dependency(1, first, second)]
    return loaded(trace)


def test_recorded_dependencies_take_the_place_of_times():
    inferred, recorded = (find_device_dependencies(of_three_streams(flows)) for flows in (False, True))
    assert inferred.after.tolist()[3] == 2
    assert recorded.after.tolist()[3] == 1
    assert recorded.lag.tolist()[3] == 10 * US


def test_an_operation_with_recorded_dependencies_depends_on_no_others():
    """The collective began as the first kernel ended, but was recorded as independent of it."""
    trace = drawn(
        """
        launch  |||...............
        gpu     .aaa........bbb...
        nccl    ....########......
        """,
        100.0,
    )
    kernels = [event for event in trace["traceEvents"] if event.get("cat") == "kernel"]
    assert find_device_dependencies(loaded(trace)).after.tolist() == [NONE, 0, 1]
    trace["traceEvents"] += dependency(0, kernels[1], kernels[2])
    assert find_device_dependencies(loaded(trace)).after.tolist() == [NONE, NONE, 1]


def with_call(trace: Trace, name: str, start: int) -> Trace:
    """The trace with one more call on its first thread."""
    row = {"start": start, "kind": Kind.CALL, "name": len(trace.names), "thread": int(trace.calls.thread[0])}
    values = {item.name: np.append(getattr(trace.events, item.name), row.get(item.name, 0)) for item in fields(Events)}
    order = np.argsort(values["start"], kind="stable")
    events = Events(**{name: column[order] for name, column in values.items()})
    return replace(trace, events=events, names=(*trace.names, name))
