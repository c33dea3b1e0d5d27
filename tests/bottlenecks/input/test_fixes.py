"""Tests of the scenarios of the loader and of storage on drawn timelines, worked out by hand; times in columns."""

import numpy as np
import pytest
from helpers import draw
from helpers.drawn_graphs import UNIT_NS, after_fix, columns, drawn_graph

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.idle_gaps import no_time, times_of
from tb_bottleneck.base.intervals import union
from tb_bottleneck.bottlenecks.input import fixes as loader
from tb_bottleneck.bottlenecks.input import loader_workers
from tb_bottleneck.bottlenecks.input.fixes import (
    LOADER,
    LOOP,
    STORAGE,
    WORKERS,
    _between_batches,
    at_workers_pace,
    evened,
)
from tb_bottleneck.replay.modified_graph import Estimate

IN_MAIN = """
    step    aaaaaaaaaabbbbbbbbbb
    loader  ######....######....
    launch  ......|.........|...
    gpu     .......###.......###
"""
# Two workers deliver together, every twenty columns.
IN_WORKERS = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd
    workers ########..#.........########..#.........
    launch  ........|..|................|..|........
    gpu     .........##.##...............##.##......
"""


def test_a_fetch_becomes_taking_a_batch_from_a_queue():
    """One column of each six stays: 20 - 2 x 5. Two workers make two batches of six columns in six: no limit. They slow
    the host, which limits the step, by 7.5 %.
    """
    assert after_fix(drawn_graph(IN_MAIN), WORKERS) == 10.75


def test_workers_that_are_slower_than_the_step_are_the_limit():
    """A context that knows one core only: one worker makes two batches in twelve columns, and the host needs that core
    for up to the other eight."""
    graph = drawn_graph(IN_MAIN, tb_bottleneck={"context": {"cores": 1}})
    assert after_fix(graph, WORKERS) == pytest.approx(1.1 * 12 + 1.075 * 8 / 2), "half of the host's time is waiting"
    assert after_fix(graph, WORKERS, Estimate.LOW) >= 20, "the core is busy already: nothing is gained"
    assert after_fix(graph, WORKERS, Estimate.HIGH) == 12, "at best they do not disturb each other"
    unlimited = after_fix(drawn_graph(IN_MAIN), WORKERS, Estimate.HIGH)
    assert unlimited == 9.2, "where the cores are not known there is no wait: 0.6 columns per fetch stay"


def test_on_a_cpu_short_fetches_gain_nothing_from_workers():
    """Taking a batch from a worker takes longer than these fetches of 0.6 ms, and the operators get slower."""
    graph = drawn_graph("""
        step    aaaaaaaaaabbbbbbbbbb
        loader  ######....######....
        op      ......####......####
    """)
    assert after_fix(graph, WORKERS) == 20 * 1.175


@pytest.fixture
def quick_handover(monkeypatch):
    monkeypatch.setattr(loader_workers, "BATCH_HANDOVER_ON_CPU_NS", loader_workers.BATCH_HANDOVER_NS)


@pytest.mark.usefixtures("quick_handover")
def test_steps_that_the_cpu_computes_share_it_with_the_workers():
    """One of each six columns stays, with the four of its operator: 10. They share the cores: 1.175 times that."""
    graph = drawn_graph("""
        step    aaaaaaaaaabbbbbbbbbb
        loader  ######....######....
        op      ......####......####
    """)
    assert after_fix(graph, WORKERS) == 11.75
    assert after_fix(graph, WORKERS, Estimate.LOW) == pytest.approx(12 * 1.35), "two columns for each fetch"


@pytest.mark.usefixtures("quick_handover")
@pytest.mark.parametrize(("threads", "expected", "low"), [(1, 11.75, 16.2), (2, 13.65, 18.6)])
def test_workers_and_the_threads_of_the_training_share_the_cores(threads, expected, low):
    """Twelve columns of batches, and eight of operators on one or two threads, on two cores. With one thread, 13.2 and
    9.4 columns of work take 11.3, less than the 11.75 of the test above."""
    context = {"cores": 2, "torch_threads": threads}
    graph = drawn_graph(
        """
        step    aaaaaaaaaabbbbbbbbbb
        loader  ######....######....
        op      ......####......####
    """,
        tb_bottleneck={"context": context},
    )
    assert after_fix(graph, WORKERS) == pytest.approx(expected)
    assert after_fix(graph, WORKERS, Estimate.LOW) == pytest.approx(low)


def test_a_loader_of_another_kind_is_not_predicted():
    """It is unknown if workers would help."""
    graph = drawn_graph(IN_MAIN.replace("loader ", "op     "))
    assert WORKERS.apply(graph, Estimate.EXPECTED) is None


def test_only_a_fix_of_the_loader_is_faster_than_workers_that_are_behind():
    """Each fetch waits for six of ten columns. A host without Python would wait for the same batches."""
    graph = at_workers_pace(drawn_graph(IN_MAIN.replace("loader ", "workers")))
    gap = times_of([no_time(len(graph.items))] * len(Activity))
    quick = graph.with_items(gap=gap.with_column(Activity.LOAD_BATCH, graph.items.gap.of(Activity.LOAD_BATCH)))
    assert columns(quick) == columns(graph) > columns(quick.with_pace(0.0))
    assert after_fix(quick, WORKERS) < columns(graph)


def test_workers_that_keep_up_set_no_pace():
    """Fetches of one column only hand over a batch."""
    graph = drawn_graph("""
        step    aaaaaaaaaabbbbbbbbbb
        workers #.........#.........
        launch  .|.........|........
        gpu     ..########..########
    """)
    assert at_workers_pace(graph) is graph


def test_workers_are_timed_from_wait_to_wait():
    """Waits end at columns 8 and 28, and two batches were fetched in between."""
    begins, ends = np.array([0, 10, 20, 30]), np.array([8, 11, 28, 31])
    fetches = union(begins * UNIT_NS, ends * UNIT_NS)
    assert _between_batches(fetches, step=0.0) == 10 * UNIT_NS


def test_more_workers_shorten_the_time_between_batches():
    """Batches come every ten columns; twice the workers make the three of the window in fifteen."""
    graph = drawn_graph(IN_WORKERS)
    assert columns(graph) == 29, "the first of four steps is left out"
    assert 15 <= after_fix(graph, WORKERS) < 29


# Eight fetches of two columns, but for two of twelve: unlike a usual one, and not in the rhythm of workers.
UNEVEN = """
    step    aaaaabbbbbcccccccccccccccdddddeeeeefffffggggggggggggggghhhhh
    loader  ##...##...############...##...##...##...############...##...
    launch  ..|....|..............|....|....|....|..............|....|..
    gpu     ...##...##.............##...##...##...##.............##...##
"""
EVEN = """
    step    aaaaaaaaaabbbbbbbbbb
    loader  ######....######....
    launch  ......|.........|...
    gpu     .......###.......###
"""


def test_slow_fetches_become_usual_ones():
    """Ten columns of each of the two are gone; at worst five."""
    graph = drawn_graph(UNEVEN)
    before = columns(graph)
    assert after_fix(graph, STORAGE) == pytest.approx(before - 20, abs=0.1)
    assert after_fix(graph, STORAGE, Estimate.LOW) == pytest.approx(before - 10, abs=0.1)


def test_at_best_there_is_no_wait_for_a_batch():
    graph = drawn_graph(UNEVEN)
    assert after_fix(graph, STORAGE, Estimate.HIGH) < after_fix(graph, STORAGE)


def test_fetches_that_are_all_slow_are_left_to_workers():
    graph = drawn_graph(EVEN)
    assert columns(evened(graph, staying=0.0)) == columns(graph)
    assert after_fix(graph, STORAGE) == after_fix(graph, loader.WORKERS) < columns(graph)


def test_even_fetches_of_an_unknown_loader_are_not_predicted():
    assert STORAGE.apply(drawn_graph(EVEN.replace("loader ", "op     ")), Estimate.EXPECTED) is None


WAITING = """
    step    aaaaaaaaaabbbbbbbbbb
    loader  ####......####......
    launch  ....|.........|.....
    gpu     .....#####.....#####
"""


@pytest.fixture
def of_unknown_kind(monkeypatch):
    """Drawn fetches do not name the iterator."""
    monkeypatch.setitem(draw.HOST_ROWS, "loader", ("cpu_op", "enumerate(DataPipe)#Own"))


@pytest.fixture
def in_the_loop(monkeypatch):
    """The drawn loader is a library's frame in the loop."""
    frame = ("python_function", "transformers/tokenization_utils_base.py(2828): __call__")
    monkeypatch.setitem(draw.HOST_ROWS, "loader", frame)


def test_a_fetch_of_an_unknown_loader_becomes_taking_a_batch_from_a_queue(of_unknown_kind):
    """One column of each four stays: 20 - 2 x 3. One maker takes eight columns for both: no limit."""
    assert after_fix(drawn_graph(WAITING), LOADER) == 14


def test_at_worst_an_unknown_loader_is_pipelined_already(of_unknown_kind):
    assert after_fix(drawn_graph(WAITING), LOADER, Estimate.LOW) == columns(drawn_graph(WAITING)), "even fetches stay"


def test_one_maker_is_the_limit(of_unknown_kind):
    slow = (
        WAITING.replace("####......", "########..")
        .replace("....|.....", "........|.")
        .replace(".....#####", ".........#")
    )
    graph = drawn_graph(slow)
    assert after_fix(graph, LOADER) == pytest.approx(16), "two batches of eight columns"
    assert after_fix(graph, LOADER, Estimate.HIGH) < 16


def test_a_loop_that_makes_its_own_batches_is_fixed_alike(in_the_loop):
    graph = drawn_graph(WAITING, with_stack=1)
    assert after_fix(graph, LOOP) == 14
    assert (
        after_fix(graph, LOOP, Estimate.HIGH)
        <= after_fix(graph, LOOP)
        <= after_fix(graph, LOOP, Estimate.LOW)
        < columns(graph)
    )
