"""Embedding tables with dense gradients: which ones count, and which part of an update is theirs."""

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.draw import drawn

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.bottlenecks.memory import embedding
from tb_bottleneck.bottlenecks.memory.fixes import SPARSE
from tb_bottleneck.replay.modified_graph import Estimate, unmodified_graph
from tb_bottleneck.replay.recorded_graph import RecordedGraph
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

ROWS, WIDTH = 1_000_000, 64
# A step of ten columns: a backward pass, then an update of the table and of four times smaller weights.
DRAWN = """
    step    aaaaaaaaaabbbbbbbbbb
    op      ##..##....##..##....
    launch  |...|.....|...|.....
    stream  .##..####..##..####.
"""


def recording_of(
    tmp_path: Path,
    rows: int = ROWS,
    indices: tuple[int, ...] = (256, 20),
    other: int = ROWS // 4,
    drawing: str = DRAWN,
    **header: Any,
) -> Recording:
    trace = drawn(drawing, **header)
    operators = [event for event in trace["traceEvents"] if event.get("cat") == "cpu_op"]
    for number, event in enumerate(operators):
        backward = number % 2 == 0
        gradient = [*indices, WIDTH]
        event["name"] = "aten::embedding_dense_backward" if backward else "aten::_foreach_addcdiv_"
        tables = [[rows, WIDTH], [other, WIDTH]]
        dims: list[Any] = [gradient, list(indices), [], [], []] if backward else [tables, tables, tables, []]
        event["args"] |= {"Input Dims": dims, "Concrete Inputs": ["", "", str(rows), "-1", "False"]}
        if not backward:
            trace["traceEvents"].append(event | {"name": "Optimizer.step#Adam.step", "cat": "user_annotation"})
    path = tmp_path / "a.pt.trace.json"
    path.write_text(json.dumps(trace))
    loaded = load(str(path))
    steps = find_steps(loaded)
    assert steps is not None
    return Recording(loaded, steps)


def test_the_part_of_an_update_that_is_in_the_table(tmp_path: Path) -> None:
    """Four of ten columns update the table and weights of a quarter of its size."""
    recording = recording_of(tmp_path)
    assert embedding.dense_tables(recording) == (embedding.Table(ROWS, WIDTH, 256 * 20),)
    share = embedding.dense_update_share(recording)
    assert isinstance(share, Measure)
    assert share.value == pytest.approx(0.4 * 0.8, rel=0.02)
    said = embedding.table_rows_used(recording)
    assert isinstance(said, Measure)
    assert said.text.startswith("at most 5,120 of 1,000,000 rows (0.5 %)")


def test_the_fix_leaves_the_other_weights(tmp_path: Path) -> None:
    graph = unmodified_graph(RecordedGraph(recording_of(tmp_path)))
    fixed = SPARSE.apply(graph, Estimate.EXPECTED)
    assert fixed is not None
    kept = fixed.items.length.sum() / graph.items.length.sum()
    assert kept == pytest.approx((2 + 4 * 0.2 + 4 * 0.8 * 4 * 5120 / ROWS) / 6, rel=0.02)


def test_operators_of_a_cpu_update_the_table_too(tmp_path: Path) -> None:
    """They take four of ten columns of a step."""
    drawing = """
        step    aaaaaaaaaabbbbbbbbbb
        op      ##..####..##..####..
    """
    mixed = recording_of(tmp_path, drawing=drawing, deviceProperties=[])
    assert isinstance(embedding.dense_update_share(mixed), Missing), "other weights are updated by the same operator"
    recording = recording_of(tmp_path, other=ROWS, drawing=drawing, deviceProperties=[])
    share = embedding.dense_update_share(recording)
    assert isinstance(share, Measure)
    assert share.value == pytest.approx(0.4, abs=0.02)
    graph = unmodified_graph(RecordedGraph(recording))
    fixed = [SPARSE.apply(graph, each) for each in (Estimate.LOW, Estimate.EXPECTED, Estimate.HIGH)]
    low, expected, high = (each.window() for each in fixed if each is not None)
    assert graph.window() * 0.7 > low > expected > high


@pytest.mark.parametrize(("rows", "indices"), [(1_000, (256, 20)), (50_000, (256, 20)), (0, (256,)), (10**400, (256,))])
def test_a_small_table_or_one_that_is_mostly_used_is_none(tmp_path: Path, rows: int, indices: tuple[int, ...]) -> None:
    recording = recording_of(tmp_path, rows, indices)
    assert embedding.dense_tables(recording) == ()
    assert isinstance(embedding.dense_update_share(recording), Missing)
    assert SPARSE.apply(unmodified_graph(RecordedGraph(recording)), Estimate.EXPECTED) is None
