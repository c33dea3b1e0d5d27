"""Products of odd shapes at the rate of aligned ones, on a drawn timeline with shapes."""

import json

import pytest
from draw import drawn

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.replay.modified_graph import Case, Facts, World, recorded_world
from tb_bottleneck.replay.scenarios.alignment import SCENARIO
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
def world(tmp_path):
    def made(inputs: dict[str, object] = INPUTS, odd: str = ODD, usual: str = ALIGNED) -> World:
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
        return recorded_world(Facts(Recording(read, steps)))

    return made


def lengths(world: World, case: Case) -> list[int]:
    """In columns, of the operations in order of begin."""
    after = SCENARIO.cure(world, case)
    assert after is not None
    return [round(length / 100_000) for length in after.items.length[after.items.op >= 0].tolist()]


def test_odd_products_come_to_take_what_aligned_ones_of_their_size_take(world):
    assert lengths(world(), Case.EXPECTED) == [2, 2, 2] * 2
    assert lengths(world(), Case.HIGH) == [2, 2, 2] * 2, "no aligned one is better than the others"


def test_at_worst_they_get_half_of_the_way(world):
    assert lengths(world(), Case.LOW) == [2, 2, 5] * 2


def test_without_shapes_nothing_is_predicted(world):
    assert SCENARIO.cure(world(inputs={}), Case.EXPECTED) is None


def test_without_an_aligned_product_there_is_no_rate(world):
    assert SCENARIO.cure(world(usual=ODD), Case.EXPECTED) is None


def test_aligned_products_stay(world):
    assert SCENARIO.cure(world(odd=ALIGNED), Case.EXPECTED) is None, "nothing to shorten"
