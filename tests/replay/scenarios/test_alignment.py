"""Products of odd shapes at the rate of aligned ones, on a drawn timeline with shapes."""

import json

import pytest
from helpers.draw import drawn

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, RecordedGraph, unmodified_graph
from tb_bottleneck.replay.scenarios.precision import ALIGNED_SHAPES
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

# In each step two aligned products of two columns, 200 us, and a misaligned one of eight; of one shape each.
PRODUCTS = """
    step    aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbb
    op      abc.............abc.............
    launch  |||.............|||.............
    gpu     .aabbcccccccc....aabbcccccccc...
"""
ALIGNED, ODD = (f"cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_32x3_nn_align{width}" for width in (8, 1))
INPUTS = {"Input Dims": [[4096, 4096], [4096, 1024]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}


@pytest.fixture
def graph(tmp_path):
    def made(inputs: dict[str, object] = INPUTS, odd: str = ODD, usual: str = ALIGNED) -> ModifiedGraph:
        trace = drawn(PRODUCTS)
        for event in trace["traceEvents"]:
            if event["cat"] == "cpu_op":
                event["name"], event["args"] = "aten::mm", inputs
            elif event["cat"] == "kernel":
                event["name"] = odd if event["dur"] > 200 else usual
        path = tmp_path / "drawn.pt.trace.json"
        path.write_text(json.dumps(trace))
        read = load(str(path))
        steps = find_steps(read)
        assert steps is not None
        return unmodified_graph(RecordedGraph(Recording(read, steps)))

    return made


def lengths(graph: ModifiedGraph, estimate: Estimate) -> list[int]:
    """In columns, of the operations in order of begin."""
    after = ALIGNED_SHAPES.apply(graph, estimate)
    assert after is not None
    return [round(length / 100_000) for length in after.items.length[after.items.op >= 0].tolist()]


def test_odd_products_come_to_take_what_aligned_ones_of_their_size_take(graph):
    assert lengths(graph(), Estimate.EXPECTED) == [2, 2, 2] * 2
    assert lengths(graph(), Estimate.HIGH) == [2, 2, 2] * 2, "no aligned one is better than the others"


def test_at_worst_they_get_half_of_the_way(graph):
    assert lengths(graph(), Estimate.LOW) == [2, 2, 5] * 2


def test_without_shapes_nothing_is_predicted(graph):
    assert ALIGNED_SHAPES.apply(graph(inputs={}), Estimate.EXPECTED) is None


def test_without_an_aligned_product_there_is_no_rate(graph):
    assert ALIGNED_SHAPES.apply(graph(usual=ODD), Estimate.EXPECTED) is None


def test_aligned_products_stay(graph):
    assert ALIGNED_SHAPES.apply(graph(odd=ALIGNED), Estimate.EXPECTED) is None, "nothing to shorten"
