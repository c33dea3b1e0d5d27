"""Products on matrix units: kernels of ordinary arithmetic become as much shorter as the device's peaks allow."""

import pytest
from helpers import draw
from helpers.draw import drawn
from helpers.drawn_graphs import columns, drawn_graph

from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.replay.scenarios.precision import PEAK_SHARE_KEPT, SCENARIO

FP32 = "ampere_sgemm_128x64_tn"
BUSY = """
    step    aaaaaaaaaaaabbbbbbbbbbbb
    launch  |...........|...........
    gpu     .###########.###########
"""


@pytest.fixture
def in_fp32(monkeypatch):
    """Drawn products are of an fp32 kernel."""
    category, _, stream, grid = draw.DEVICE_ROWS["gpu"]
    monkeypatch.setitem(draw.DEVICE_ROWS, "gpu", (category, FP32, stream, grid))


def test_an_ordinary_product_gets_shorter(in_fp32):
    graph = drawn_graph(BUSY)
    after = {estimate: SCENARIO.apply(graph, estimate) for estimate in Estimate}
    lengths = {estimate: int(fixed.items.length.sum()) for estimate, fixed in after.items() if fixed is not None}
    assert lengths[Estimate.HIGH] < lengths[Estimate.EXPECTED] < lengths[Estimate.LOW] < graph.items.length.sum()
    assert lengths[Estimate.EXPECTED] == pytest.approx(
        lengths[Estimate.HIGH] / PEAK_SHARE_KEPT[Estimate.EXPECTED], rel=0.01
    )


def test_products_on_matrix_units_stay():
    graph = drawn_graph(BUSY)
    after = SCENARIO.apply(graph, Estimate.EXPECTED)
    assert after is not None
    assert columns(after) == columns(graph)


def test_peaks_are_not_guessed_of_an_unknown_device(in_fp32):
    graph = drawn_graph(BUSY, deviceProperties=[{"id": 0, "name": "Somebody's own", "numSms": 8}])
    assert SCENARIO.apply(graph, Estimate.EXPECTED) is None
    assert drawn(BUSY)["deviceProperties"][0]["name"].startswith("NVIDIA")
