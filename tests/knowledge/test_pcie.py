"""The rates of PCIe links follow from the specification, and copies do not exceed them."""

import pytest

from tb_bottleneck.knowledge.gpus import PINNED_LANES, USABLE_LINK_SHARE, lane_rates, pinned_rates

ENCODING = {1: 8 / 10, 2: 8 / 10, 3: 128 / 130, 4: 128 / 130, 5: 128 / 130, 6: 242 / 256}
TRANSFERS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}  # GT/s


@pytest.mark.parametrize("generation", sorted(lane_rates()))
def test_the_rate_of_a_lane_is_that_of_the_specification(generation):
    expected = TRANSFERS[generation] * ENCODING[generation] / 8
    assert lane_rates()[generation] == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("generation", sorted(pinned_rates()))
def test_pinned_copies_reach_about_the_usable_rate(generation):
    usable = lane_rates()[generation] * PINNED_LANES * USABLE_LINK_SHARE
    assert pinned_rates()[generation] == pytest.approx(usable, rel=0.06)
