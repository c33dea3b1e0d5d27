"""Copies between host and device: the kind of memory, and their rate against the link's."""

import json

import pytest
from helpers.draw import drawn
from simulate.examine import measured
from simulate.kineto import DIALECTS, Recording
from simulate.problems import PROBLEMS
from simulate.workload import healthy

from tb_bottleneck.attribution.trace_recording import Recording as Measured
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.bottlenecks.transfer.facts import (
    bytes_copied_back,
    copy_back_share,
    host_copies,
    link_bandwidth,
    pageable_bandwidth,
    pageable_copies,
    pinned_bandwidth,
    recorded_link,
)
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

PINNED = healthy(1).but(loader="workers", batch_bytes=8_000_000, pinned=True)
PAGEABLE = PINNED.but(pinned=False)


def calibrated(**figures):
    return {"tb_bottleneck": {"context": {"calibration": figures}}}


def test_pinned_copies_are_as_fast_as_the_link_and_pageable_ones_are_not():
    recording = measured(PINNED)
    assert pinned_bandwidth(recording).value == pytest.approx(24e9, rel=0.01)
    assert pinned_bandwidth(recording).begin is not None
    assert pageable_copies(recording).value == 0
    assert host_copies(recording).value == 8_000_000
    assert isinstance(pageable_bandwidth(recording), Missing)
    assert pageable_bandwidth(measured(PAGEABLE)).value == pytest.approx(5e9, rel=0.01)
    assert pageable_copies(measured(PAGEABLE)).value == 8_000_000


def test_small_copies_do_not_show_the_rate_of_the_link():
    assert isinstance(pinned_bandwidth(measured(PINNED.but(batch_bytes=100_000))), Missing)


def test_rocm_does_not_record_the_kind_of_memory():
    recording = measured(PINNED, Recording(DIALECTS[4]))
    assert isinstance(pageable_copies(recording), Missing)
    assert isinstance(pinned_bandwidth(recording), Missing)


def test_the_link_is_the_devices_best_slot_unless_it_was_measured():
    assert link_bandwidth(measured(PINNED)).value == pytest.approx(1.969e9 * 16 * 0.8)  # an A100: PCIe 4, 16 lanes
    header = calibrated(h2d_pinned_bytes_per_s=22e9)
    assert link_bandwidth(measured(PINNED, **header)).value == 22e9
    assert isinstance(link_bandwidth(measured(PINNED, Recording(DIALECTS[0]))), Missing)  # the device has no name


RECORDED = {"link_generation": 3, "link_width": 8, "link_generation_max": 3, "link_width_max": 8}


def linked(**facts):
    return {"tb_bottleneck": {"context": RECORDED | facts}}


def test_the_recorded_link_is_cited_and_its_slot_is_what_copies_can_reach():
    """A slow link was told that no recording contains its generation and width, which the monitor records."""
    slow = PROBLEMS["a slow link"].make(1)
    recording = measured(slow, **linked(link_generation=1, link_generation_max=4, link_width_max=16))
    assert recorded_link(recording).text == "generation 1 x8, maximum generation 4 x16"
    assert link_bandwidth(measured(PINNED, **linked())).value == pytest.approx(0.985e9 * 8 * 0.8, rel=0.01)
    limited = recorded_link(measured(PINNED, **linked(link_generation_gpu_max=4)))
    assert limited.text == "generation 3 x8, the limit of this slot; the device supports generation 4"
    assert isinstance(recorded_link(measured(PINNED)), Missing)


@pytest.mark.parametrize("value", [-1, 0, 10**9, "3", 3.5, None, True, []])
def test_a_link_that_cannot_be_is_not_cited(value):
    recording = measured(PINNED, **linked(link_generation=value, link_width_max=value))
    assert isinstance(recorded_link(recording), Missing)
    assert link_bandwidth(recording).value == pytest.approx(1.969e9 * 16 * 0.8)


@pytest.mark.parametrize("value", [-1, 0, 1e30, "22e9", None, True, [], {"a": 1}])
def test_a_rate_that_no_link_has_is_not_taken_for_measured(value):
    recording = measured(PINNED, **calibrated(h2d_pinned_bytes_per_s=value))
    assert link_bandwidth(recording).value == pytest.approx(1.969e9 * 16 * 0.8)


def test_a_slow_link_is_well_below_it():
    recording = measured(PROBLEMS["a slow link"].make(1))
    assert pinned_bandwidth(recording).value < 0.6 * link_bandwidth(recording).value


# Two kernels, then results of 3 ms on their way back to the host; the batch's own copy takes 1 ms.
RESULTS = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd
    op      ########################################
    h2d     #.........#.........#.........#.........
    gpu     .aabb......aabb......aabb......aabb.....
    d2h     .....###.......###.......###.......###..
"""


def test_copies_of_results_are_not_fixed_by_pinned_batches(tmp_path):
    path = tmp_path / "results.pt.trace.json"
    path.write_text(json.dumps(drawn(RESULTS, 1000)))
    trace = load(str(path))
    recording = Measured(trace, find_steps(trace))
    # The first step begins behind its copy to the device, which makes 9 of 12 ms 9 of 11.
    assert copy_back_share(recording).value == pytest.approx(9 / 11, abs=0.01)
    assert bytes_copied_back(recording).value == 1 << 20
    report = diagnose(str(path))
    assert "large_results" in [finding.cause for finding in report.findings]
    assert "pageable_copies" not in [finding.cause for finding in report.findings]


def test_without_results_nothing_is_copied_back():
    assert copy_back_share(measured(PINNED)).value == bytes_copied_back(measured(PINNED)).value == 0
