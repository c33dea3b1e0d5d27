"""Synchronisations that cost time: their kinds, their number, and the lines of the program that wait."""

import json

import pytest
from helpers.draw import drawn, drawn_trace
from simulate.examine import measured
from simulate.problems import HARD_NEGATIVES, PROBLEMS
from simulate.workload import healthy

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.bottlenecks.sync.facts import (
    costly_reads,
    costly_waits,
    costly_waits_of,
    explicit_waits,
    kinds_of_waits,
    minor_kind_waits,
    read_waits,
    shape_waits,
    upload_waits,
    waiting_operators,
)
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

UPLOADS = healthy(1).but(non_blocking=False, loader="workers", workers=8, load_ns=50_000, kernel_ns=60_000, layers=2)


@pytest.mark.parametrize(
    ("workload", "kind"),
    [
        (PROBLEMS["scalar reads in the forward pass"].make(1), read_waits),
        (PROBLEMS["scalar reads in the forward pass"].make(1).but(old_reads=True), read_waits),
        (PROBLEMS["a scalar read that drains the queue"].make(2), read_waits),
        (PROBLEMS["metrics read one by one"].make(3), read_waits),
        (PROBLEMS["masks in the forward pass"].make(1), shape_waits),
        (PROBLEMS["a synchronize in every step"].make(1), explicit_waits),
        (UPLOADS, upload_waits),
    ],
)
def test_a_wait_is_of_the_kind_that_the_program_asked_for(workload, kind):
    recording = measured(workload)
    shares = {each.__name__: each(recording).value for each in (read_waits, shape_waits, explicit_waits, upload_waits)}
    assert shares.pop(kind.__name__) > 0.9
    assert sum(shares.values()) < 0.1
    assert kind(recording).begin is not None


def test_every_read_of_a_row_of_reads_counts_though_only_the_first_drains_the_queue():
    """Five metrics are printed one after the other: each of them is a round trip with the device idle."""
    workload = PROBLEMS["metrics read one by one"].make(1).but(metric_reads=5)
    found = costly_reads(measured(workload))
    assert found.value == pytest.approx(5, abs=0.5)
    assert found.begin < found.end


def test_the_operator_and_the_line_that_wait_are_named_with_their_part_of_the_cost():
    recording = measured(PROBLEMS["scalar reads in the forward pass"].make(1).but(stacks=True))
    assert waiting_operators(recording).text.startswith("aten::_local_scalar_dense (")
    assert waiting_operators(recording).text.endswith("100 %)")


@pytest.mark.parametrize("name", ["a scalar read in every step", "metrics printed in every step"])
def test_reads_behind_which_the_queue_is_filled_again_cost_microseconds(name):
    recording = measured(HARD_NEGATIVES[name](1))
    assert recording.account.share("sync") < 0.02


def test_a_wait_over_a_busy_device_is_none():
    trace = drawn_trace("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  ||........||........
        sync    ..#######...#######.
        gpu     .aaaabbbbbcccccddddd
    """)
    recording = Recording(trace, find_steps(trace))
    assert costly_waits(recording).value == 0
    assert isinstance(read_waits(recording), Missing)
    assert isinstance(waiting_operators(recording), Missing)


def test_on_the_cpu_nothing_waits_for_a_device():
    trace = drawn_trace("""
        step    aaaaaaaaaabbbbbbbbbb
        op      #.#.#.#.#.#.#.#.#.#.
    """)
    recording = Recording(trace, find_steps(trace))
    for measure in (costly_waits, costly_reads, read_waits, waiting_operators):
        assert not isinstance(measure(recording), Measure)


TWO_KINDS = """
    step    aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbb
    launch  |.............|.....|.............|.....
    op      ..............####................####..
    sync    .############..##....############..##...
    gpu     .####..........#.....####..........#....
"""


def test_waits_of_kinds_that_cost_little_are_counted():
    """Each step has a long wait outside any operator, and a short one in an operator."""
    assert minor_kind_waits(measured(PROBLEMS["scalar reads in the forward pass"].make(1))).value == 0, "of one kind"
    trace = drawn_trace(TWO_KINDS)
    recording = Recording(trace, find_steps(trace))
    assert minor_kind_waits(recording).value == 0.5
    assert kinds_of_waits(recording).text.startswith("explicit (2x")


def test_waits_of_several_threads_at_once_cost_no_more_than_the_idle_time(tmp_path):
    drawing = drawn(
        """
        step    aaaaaaaaaabbbbbbbbbb
        launch  |.........|.........
        sync    ..#######...#######.
        gpu     .####......####.....
        """,
        100,
    )
    waits = [event for event in drawing["traceEvents"] if event["name"] == "cudaStreamSynchronize"]
    for thread in range(8):
        drawing["traceEvents"] += [each | {"tid": 500 + thread, "ts": each["ts"] + 10 * thread} for each in waits]
    path = tmp_path / "a.pt.trace.json"
    path.write_text(json.dumps(drawing))
    trace = load(str(path))
    recording = Recording(trace, find_steps(trace))
    found = costly_waits_of(recording)
    assert len(found) > 1
    assert sum(wait.cost for wait in found) <= recording.idle.total()
