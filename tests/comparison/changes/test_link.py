"""Another link: large copies from pinned memory go by it, and nothing else does."""

import json

import numpy as np
import pytest
from comparison.sides import context, judged, repeated
from draw import drawn

from tb_bottleneck.comparison.changes.change import Unpredictable
from tb_bottleneck.comparison.changes.link import to_link
from tb_bottleneck.comparison.side import open_side
from tb_bottleneck.replay.world import Case

DRAWING = repeated(9, op="##.....", h2d="..##...", gpu="....###")


def pinned(tmp_path, **header):
    path = tmp_path / "pinned.pt.trace.json"
    path.write_text(json.dumps(drawn(DRAWING, **header)).replace("Pageable -> Device", "Pinned -> Device"))
    return open_side("pinned", [str(path)]).recording


@pytest.mark.parametrize(("spelt", "factor"), [("gen5x16", 0.5), ("PCIe 3 x16", 2.0), ("gen4x8", 2.0)])
def test_pinned_copies_go_by_the_link(tmp_path, spelt, factor):
    found = to_link(pinned(tmp_path), spelt).factors(Case.EXPECTED)
    assert sorted(set(np.round(found, 2))) == pytest.approx(sorted({1.0, factor}), abs=0.01)


def test_the_link_that_the_run_recorded_comes_first(tmp_path):
    recording = pinned(tmp_path, tb_bottleneck=context(link_generation=3, link_width=8))
    change = to_link(recording, "gen3x16")
    assert change.factors(Case.EXPECTED).min() == pytest.approx(0.5)
    assert "as the run recorded it" in change.assumptions[0]


def test_copies_from_pageable_memory_stay_as_they_are(tmp_path):
    assert (to_link(judged(tmp_path, DRAWING).recording, "gen5x16").factors(Case.EXPECTED) == 1).all()


@pytest.mark.parametrize("spelt", ["", "gen9x16", "gen4", "x16", "gen4x0"])
def test_what_is_no_link_is_refused(tmp_path, spelt):
    with pytest.raises(Unpredictable, match="write gen4x16"):
        to_link(pinned(tmp_path), spelt)
