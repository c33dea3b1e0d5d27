"""The account as a timeline: the stretches are disjoint, and their sums are the account's own."""

import os
from pathlib import Path

import numpy as np
import pytest
from draw import drawn_trace

from tb_bottleneck.drilldown.inspection import InspectedTrace
from tb_bottleneck.regime import REGIMES
from tb_bottleneck.trace.trace import load

DRAWINGS = {
    "starved": """
        step    aaaaaaaaaabbbbbbbbbbcccccccccc
        loader  ####......####......####......
        gpu     ....aabbcc....aabbcc....aabbcc
    """,
    "waits": """
        step    aaaaaaaaaaaaaaabbbbbbbbbbbbbbb
        op      ##.............##.............
        launch  |.||...........|.||...........
        sync    ....####...........####.......
        gpu     .aa.bbb.........aa.bbb........
        d2h     .......#..............#.......
    """,
    "copies and collectives": """
        step    aaaaaaaaaaaaaaabbbbbbbbbbbbbbb
        op      ###............###............
        gpu     ...aaa.........bbb............
        nccl    ....nnnn.........nnnn.........
        h2d     ..........hh.............hh...
    """,
    "on the CPU": """
        step    aaaaaaaaaabbbbbbbbbb
        loader  ####......####......
        op      ....#####.....#####.
    """,
}
PUBLIC = sorted(Path(os.environ.get("TB_BOTTLENECK_TRACES", "nowhere")).glob("*.json.gz"))


def check(case):
    pieces, account = case.pieces, case.recording.account
    assert (pieces.end > pieces.start).all()
    assert (pieces.start[1:] >= pieces.end[:-1]).all(), "stretches overlap"
    assert {regime: pieces.of(regime).total() for regime in REGIMES} == account.ns


@pytest.mark.parametrize("name", DRAWINGS)
def test_the_sums_are_the_accounts(name):
    check(InspectedTrace(drawn_trace(DRAWINGS[name])))


def test_who_owns_the_time_is_told_where_it_was():
    """0 to 400 us the loader, then 600 us of kernels, in each step."""
    case = InspectedTrace(drawn_trace(DRAWINGS["starved"]))
    steps = case.recording.steps
    waits = case.pieces.of("input")
    assert (waits.starts % 1_000_000 == 0).all()
    assert (waits.ends - waits.starts <= 400_000).all()
    assert int(waits.total()) == case.recording.account.ns["input"]
    assert waits.ends[-1] < steps.end


@pytest.mark.skipif(not PUBLIC, reason="TB_BOTTLENECK_TRACES names no directory of traces")
@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.name)
def test_on_public_recordings_too(path):
    case = InspectedTrace(load(str(path)))
    if case.recording is None or not case.recording.on_device:
        pytest.skip("nothing ran on a device")
    check(case)


def test_each_steps_account_sums_to_the_step():
    case = InspectedTrace(drawn_trace(DRAWINGS["starved"]))
    steps = case.recording.steps
    owned = sum(case.pieces.of(regime).covered(steps.edges[:-1], steps.edges[1:]) for regime in REGIMES)
    assert np.array_equal(owned, steps.durations)
