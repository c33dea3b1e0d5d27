"""Devices are found by the names that people type, and their rates compared fairly."""

import pytest

from tb_bottleneck.comparison.devices import device_named, link_rate, speed_ratio
from tb_bottleneck.errors import NotFound
from tb_bottleneck.knowledge.precisions import Precision

BF16, FP32 = Precision("tensor", "bf16"), Precision("vector", "fp32")


@pytest.mark.parametrize("name", ["NVIDIA H200", "h200", "H200 SXM", "nvidia h200"])
def test_one_device_has_many_spellings(name):
    assert device_named(name).name == "H200 SXM"


def test_a_geforce_needs_no_maker_and_no_space():
    assert device_named("rtx4090").name == "GeForce RTX 4090"


def test_an_unknown_device_is_answered_with_near_ones():
    with pytest.raises(NotFound, match=r"did you mean .*A100"):
        device_named("A100")


def test_nonsense_is_answered_with_a_way_to_say_it():
    with pytest.raises(NotFound, match="name it as torch does"):
        device_named("§§§§")


def test_the_ratio_is_of_what_products_reach_where_that_is_known_of_both():
    a, b = device_named("NVIDIA A100-SXM4-80GB"), device_named("NVIDIA H100 80GB HBM3")
    assert speed_ratio(a, b, BF16) == pytest.approx(989 * 0.80 / (312 * 0.87))
    assert speed_ratio(a, b, FP32) == pytest.approx(67 / 19.5)


def test_a_type_that_the_other_device_lacks_runs_on_its_ordinary_units():
    a, b = device_named("NVIDIA A100-SXM4-80GB"), device_named("Tesla V100-SXM2-32GB")
    assert speed_ratio(a, b, BF16) == pytest.approx(15.7 / 312)


def test_what_is_not_known_is_no_number():
    a = device_named("NVIDIA A100-SXM4-80GB")
    assert speed_ratio(a, a, None) is None
    assert speed_ratio(a, a, Precision("tensor", None)) is None


def test_a_link_s_rate_is_what_a_copy_can_use():
    assert link_rate(4, 16) == pytest.approx(25.2, abs=0.1)
    assert link_rate(9, 16) is None
