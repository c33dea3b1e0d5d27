"""Work in float64 becomes work in float32; the drawn runs work for 8 of 10 columns."""

import pytest
from helpers.typed_runs import ON_A_GPU, ON_THE_CPU, typed_recording

from tb_bottleneck.replay.modified_graph import Estimate, RecordedGraph, unmodified_graph
from tb_bottleneck.replay.scenarios.precision import DOUBLE_LEFT, PRODUCTS_LEFT, SINGLE_PRECISION


@pytest.mark.parametrize("estimate", Estimate)
@pytest.mark.parametrize(("types", "work"), [(("double",), 8), (("double", "float"), 4), (("float",), 0)])
def test_operators_of_the_cpu_in_float64_take_a_part_of_their_time(tmp_path, estimate, types, work):
    graph = unmodified_graph(RecordedGraph(typed_recording(tmp_path, ON_THE_CPU, *types)))
    saved = graph.window() - SINGLE_PRECISION.apply(graph, estimate).window()
    assert saved / 600_000 == pytest.approx(work * (1 - DOUBLE_LEFT[estimate]), abs=0.01)


@pytest.mark.parametrize("estimate", Estimate)
def test_kernels_in_float64_take_a_part_of_their_time(tmp_path, estimate):
    graph = unmodified_graph(RecordedGraph(typed_recording(tmp_path, ON_A_GPU, "double")))
    fixed = SINGLE_PRECISION.apply(graph, estimate)
    left = sorted({round(length / 400_000, 2) for length in fixed.items.length.tolist() if length})
    assert left == sorted({round(DOUBLE_LEFT[estimate], 2), round(PRODUCTS_LEFT[estimate], 2)})
