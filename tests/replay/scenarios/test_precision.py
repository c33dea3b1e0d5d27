"""Products on matrix units: kernels of ordinary arithmetic become as much shorter as the device's peaks allow."""

import draw
import pytest
from draw import drawn
from drawn_worlds import columns, drawn_world

from tb_bottleneck.replay.modified_graph import Case
from tb_bottleneck.replay.scenarios.precision import REACHES, SCENARIO

FP32 = "ampere_sgemm_128x64_tn"
BUSY = """
    step    aaaaaaaaaaaabbbbbbbbbbbb
    launch  |...........|...........
    gpu     .###########.###########
"""


@pytest.fixture
def in_fp32(monkeypatch):
    """Drawn products are of an fp32 kernel."""
    category, _, stream, grid = draw._DEVICE_ROWS["gpu"]
    monkeypatch.setitem(draw._DEVICE_ROWS, "gpu", (category, FP32, stream, grid))


def test_an_ordinary_product_gets_shorter(in_fp32):
    world = drawn_world(BUSY)
    after = {case: SCENARIO.cure(world, case) for case in Case}
    lengths = {case: int(cured.items.length.sum()) for case, cured in after.items() if cured is not None}
    assert lengths[Case.HIGH] < lengths[Case.EXPECTED] < lengths[Case.LOW] < world.items.length.sum()
    assert lengths[Case.EXPECTED] == pytest.approx(lengths[Case.HIGH] / REACHES[Case.EXPECTED], rel=0.01)


def test_products_on_matrix_units_stay():
    world = drawn_world(BUSY)
    after = SCENARIO.cure(world, Case.EXPECTED)
    assert after is not None
    assert columns(after) == columns(world)


def test_peaks_are_not_guessed_of_an_unknown_device(in_fp32):
    world = drawn_world(BUSY, deviceProperties=[{"id": 0, "name": "Somebody's own", "numSms": 8}])
    assert SCENARIO.cure(world, Case.EXPECTED) is None
    assert drawn(BUSY)["deviceProperties"][0]["name"].startswith("NVIDIA")
