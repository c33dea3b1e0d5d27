"""Tests of the scenarios of the host on drawn timelines, worked out by hand; times in columns.

Columns are of 1 ms for Python and operators, since shorter pauses are dispatching.
"""

import json

import pytest
from helpers import draw
from helpers.draw import HOST_ROWS
from helpers.drawn_graphs import after_fix, columns, drawn_graph, drawn_recording
from helpers.typed_runs import typed_recording

from tb_bottleneck.bottlenecks.allocator.fixes import WITHOUT_ALLOCATIONS
from tb_bottleneck.bottlenecks.host.fixes import PYTHON_LEFT, WITHOUT_HOST_OPERATORS, WITHOUT_PYTHON, WITHOUT_TRACER
from tb_bottleneck.bottlenecks.interruption.fixes import CHECKPOINTS, COLLECTION, LOGGING, WITHOUT_FIRST_RUNS
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.measures.unaffected_steps import BESIDE_WRITER
from tb_bottleneck.replay.modified_graph import Estimate, unmodified_graph
from tb_bottleneck.replay.recorded_graph import RecordedGraph

PYTHON = """
    step    aaaaaaaaaabbbbbbbbbb
    op      ..........#.........
    launch  ......|.........|...
    gpu     .......###.......###
"""


def milliseconds(estimate: Estimate) -> float:
    graph = unmodified_graph(RecordedGraph(drawn_recording(PYTHON, unit_us=1000.0)))
    after = WITHOUT_PYTHON.apply(graph, estimate)
    return round(after.window() / 1e6, 1)


def test_pauses_outside_operators_go():
    """Per step: six columns before the launch (five behind the operator), three behind it."""
    assert milliseconds(Estimate.HIGH) == milliseconds(Estimate.EXPECTED)
    assert milliseconds(Estimate.EXPECTED) < 10 < milliseconds(Estimate.LOW) < 20


TRACED = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd
    launch  .....|||.......|||.......|||.......|||..
    gpu     ......abc.......abc.......abc.......abc.
"""


@pytest.mark.parametrize(
    ("aids", "cause"), [(["tracer"], "python_tracer"), (["none"], "host_python"), (3, "host_python")]
)
def test_a_tracer_is_the_cause_in_place_of_the_python_that_it_slows(tmp_path, aids, cause):
    path = tmp_path / "a.pt.trace.json"
    path.write_text(json.dumps(draw.drawn(TRACED, 1000.0, tb_bottleneck={"context": {"debugging": aids}})))
    found = {each.cause for each in diagnose(str(path)).findings}
    assert found & {"python_tracer", "host_python"} == {cause}


def test_without_a_tracer_python_and_dispatching_take_a_part_of_their_time():
    graph = unmodified_graph(RecordedGraph(drawn_recording(PYTHON, unit_us=1000.0)))
    low, expected, high = (
        WITHOUT_TRACER.apply(graph, each).window() for each in (Estimate.LOW, Estimate.EXPECTED, Estimate.HIGH)
    )
    assert graph.window() > low > expected > high
    assert graph.window() / expected < 1 / PYTHON_LEFT[Estimate.EXPECTED]


RESULTS = """
    step    aaaaaaaaaabbbbbbbbbb
    launch  |.........|.........
    gpu     .####......####.....
    sync    .####......####.....
"""


def test_the_host_no_longer_waits_for_results_that_the_code_works_on():
    """Five columns of Python after each wait of four: without both, the device's four columns per step remain."""
    graph = unmodified_graph(RecordedGraph(drawn_recording(RESULTS, unit_us=1000.0)))
    after = {each: WITHOUT_PYTHON.apply(graph, each).window() / 1e6 for each in Estimate}
    assert after[Estimate.EXPECTED] < 9.5
    assert after[Estimate.LOW] > 12


METRICS = """
    step    aaaaaaaaaabbbbbbbbbb
    op      .#####.....#####....
    launch  ......|.........|...
    gpu     .......##........##.
"""


def operator_milliseconds(estimate: Estimate) -> float:
    graph = unmodified_graph(RecordedGraph(drawn_recording(METRICS, unit_us=1000.0)))
    after = WITHOUT_HOST_OPERATORS.apply(graph, estimate)
    return round(after.window() / 1e6, 1)


def test_their_time_goes():
    assert operator_milliseconds(Estimate.HIGH) == operator_milliseconds(Estimate.EXPECTED) < 12
    assert 12 < operator_milliseconds(Estimate.LOW) < 18


SAVING = """
    step    aaaaaaaaaabbbbbbbbbb
    save    .....#####.....#####
    launch  |.........|.........
    gpu     .####......####.....
"""


def test_a_hundredth_of_each_interruption_stays():
    """Five columns become 0.05, twice."""
    graph = drawn_graph(SAVING)
    assert columns(graph) == 20
    assert after_fix(graph, CHECKPOINTS) == pytest.approx(10.1, abs=0.01)


def test_bounds_are_a_third_as_often_and_never():
    graph = drawn_graph(SAVING)
    assert after_fix(graph, CHECKPOINTS, Estimate.LOW) == pytest.approx(10 + 10 / 3, abs=0.01)
    assert after_fix(graph, CHECKPOINTS, Estimate.HIGH) == 10


def test_interruptions_of_another_kind_stay():
    assert after_fix(drawn_graph(SAVING), COLLECTION) == 20


def test_on_a_cpu_the_high_estimate_has_the_pace_of_the_quickest_operators_in_python_too(tmp_path):
    """A writer's thread takes turns with Python. Operators take 2 columns once, 4 otherwise; Python 6 and 4."""
    drawing = f"""
        step    {"aaaaaaaaaabbbbbbbbbb" * 3}
        save    {"##........" * 6}
        op      ..aa......{"..aaaa...." * 5}
    """
    graph = unmodified_graph(RecordedGraph(typed_recording(tmp_path, drawing, "float", unit_us=1000.0)))
    operators, python = 2 + 5 * 4, 6 + 5 * 4
    quickest = 6 * 2 / operators
    after = CHECKPOINTS.apply(graph, Estimate.HIGH).window() / 1e6
    assert after == pytest.approx((operators + python) * quickest, abs=0.1)


def test_beside_the_thread_of_tensorboards_writer_all_work_of_the_host_is_slow(tmp_path, monkeypatch):
    """Logging takes 2 columns of each 10, operators 2 or 4, Python the rest. Operators show a pace of 2 for 3.7."""
    frame = ("python_function", "torch/utils/tensorboard/writer.py(465): add_histogram")
    monkeypatch.setitem(HOST_ROWS, "save", frame)
    drawing = f"""
        step    {"aaaaaaaaaabbbbbbbbbb" * 3}
        save    {"##........" * 6}
        op      ..aa......{"..aaaa...." * 5}
    """
    graph = unmodified_graph(RecordedGraph(typed_recording(tmp_path, drawing, "float", unit_us=1000.0)))
    after = {estimate: LOGGING.apply(graph, estimate).window() / 1e6 for estimate in Estimate}
    rest, quickest = 48, 6 * 2 / (2 + 5 * 4)
    assert after[Estimate.LOW] == pytest.approx(rest + 12 / 3, abs=0.1)
    assert after[Estimate.EXPECTED] == pytest.approx(rest * quickest + 0.12, abs=0.1)
    assert after[Estimate.HIGH] == pytest.approx(rest * BESIDE_WRITER, abs=0.1)


LOADING = """
    step    aaaaaaaaaabbbbbbbbbb
    malloc  ...####.............
    launch  .......|..|.........
    gpu     ........##.#########
"""


@pytest.fixture
def module_loading(monkeypatch):
    """The drawn cudaMalloc loads a module."""
    monkeypatch.setitem(draw.HOST_ROWS, "malloc", ("cuda_driver", "cuModuleLoadData"))


def test_loading_takes_no_time(module_loading):
    """Its four columns are gone; at worst two of them come back."""
    graph = drawn_graph(LOADING)
    assert after_fix(graph, WITHOUT_FIRST_RUNS) == columns(graph) - 4
    assert after_fix(graph, WITHOUT_FIRST_RUNS, Estimate.LOW) == columns(graph) - 2
    assert after_fix(graph, WITHOUT_FIRST_RUNS, Estimate.HIGH) == after_fix(graph, WITHOUT_FIRST_RUNS)


def test_a_training_that_has_settled_gains_nothing():
    graph = drawn_graph(LOADING)
    assert after_fix(graph, WITHOUT_FIRST_RUNS) == columns(graph)


ALLOCATING = """
    step    aaaaaaaaaabbbbbbbbbb
    malloc  ..####......####....
    launch  ......|.........|...
    gpu     .......###.......###
"""


def test_allocations_take_no_time():
    graph = drawn_graph(ALLOCATING)
    assert columns(graph) == 20
    assert after_fix(graph, WITHOUT_ALLOCATIONS) == 12
    assert after_fix(graph, WITHOUT_ALLOCATIONS, Estimate.LOW) == 16, "at worst half of it stays"
