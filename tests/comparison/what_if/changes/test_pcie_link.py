"""Another link: large copies from pinned memory go by it, and nothing else does."""

import json

import numpy as np
import pytest
from comparison.drawn_runs import context, judged, repeated
from helpers.draw import drawn

from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.comparison.runs.compared_run import judge_run
from tb_bottleneck.comparison.what_if.hardware import change_link
from tb_bottleneck.replay.modified_graph import Estimate

DRAWING = repeated(9, op="##.....", h2d="..##...", gpu="....###")


def pinned(tmp_path, size=8_000_000, **header):
    """Copies of two columns, 200 us: 8 MB in that time is more than any link but the fastest can do."""
    path = tmp_path / "pinned.pt.trace.json"
    text = json.dumps(drawn(DRAWING, **header)).replace("Pageable -> Device", "Pinned -> Device")
    path.write_text(text.replace('"bytes": 1048576', f'"bytes": {size}'))
    return judge_run("pinned", [str(path)]).recording


@pytest.mark.parametrize(("spelt", "factor"), [("gen5x16", 0.5), ("PCIe 3 x16", 2.0), ("gen4x8", 2.0)])
def test_pinned_copies_go_by_the_link(tmp_path, spelt, factor):
    found = change_link(pinned(tmp_path), spelt).factors(Estimate.EXPECTED)
    assert sorted(set(np.round(found, 2))) == pytest.approx(sorted({1.0, factor}), abs=0.01)


def test_the_link_that_the_run_recorded_comes_first(tmp_path):
    recording = pinned(tmp_path, tb_bottleneck=context(link_generation=3, link_width=8))
    change = change_link(recording, "gen3x16")
    assert change.factors(Estimate.EXPECTED).min() == pytest.approx(0.5)
    assert "as the run recorded it" in change.assumptions[0]


def test_a_narrow_link_is_described_with_its_figures(tmp_path):
    change = change_link(pinned(tmp_path), "gen3x1")
    assert change.clause == "the link were PCIe 3.0 with 1 lane"
    assert "25 GB/s usable now, 0.8 then" in change.assumptions[0]


def test_copies_from_pageable_memory_stay_as_they_are(tmp_path):
    assert (change_link(judged(tmp_path, DRAWING).recording, "gen5x16").factors(Estimate.EXPECTED) == 1).all()


def test_copies_that_the_host_stages_go_no_faster_than_the_link(tmp_path):
    """1 MiB of pageable memory in 200 us is 5.2 GB/s, and a link of one lane carries 0.8: it cost nothing."""
    found = change_link(judged(tmp_path, DRAWING).recording, "gen3x1").factors(Estimate.EXPECTED)
    assert found.max() == pytest.approx((1 << 20) / (0.985 * 0.8) / 200_000, rel=1e-3)


@pytest.mark.parametrize("spelt", ["", "gen9x16", "gen4", "x16", "gen4x0"])
def test_what_is_no_link_is_refused(tmp_path, spelt):
    with pytest.raises(NotFound, match="write it as in gen4x16"):
        change_link(pinned(tmp_path), spelt)


@pytest.mark.parametrize(
    ("spelt", "low", "expected", "high"),
    [("gen5x16", 0.75 / 0.9, 0.75, 0.5 / 1.1), ("gen4x8", 2 / 0.9, 1.5, 1.5 / 1.1)],
)
def test_copy_time_that_the_link_does_not_cause_stays(tmp_path, spelt, low, expected, high):
    """A link of 25.2 GB/s takes half of these copies' time; the rest was predicted to follow the link, too."""
    change = change_link(pinned(tmp_path, 2_520_320), spelt)
    for case, factor in ((Estimate.LOW, low), (Estimate.EXPECTED, expected), (Estimate.HIGH, high)):
        found = change.factors(case)
        assert found[found != 1] == pytest.approx(factor, rel=1e-3)
