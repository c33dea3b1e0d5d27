"""Owned spans: they are disjoint, they cover the window, and the account is their sum."""

import os
from pathlib import Path

import numpy as np
import pytest
from helpers.draw import drawn_trace

from tb_bottleneck.attribution.host_activity import REGIME_OF_ACTIVITY, Activity
from tb_bottleneck.attribution.idle_gaps import LONGEST_DEVICE_PAUSE_NS
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

DRAWINGS = {
    "waits for data": """
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
    "operators on the CPU that a loader interrupts": """
        step    aaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbccccccccccccccccccc
        loader ...##...............##...............##.............
        op    .########..####.###.########..####.###.########..####.###
    """,
}
PUBLIC = sorted(Path(os.environ.get("TB_BOTTLENECK_TRACES", "nowhere")).glob("*.json.gz"))


def recorded(trace):
    steps = find_steps(trace)
    return Recording(trace, steps) if steps is not None else None


def check(recording):
    spans, steps = recording.owned_spans, recording.steps
    assert (spans.end > spans.start).all()
    assert (spans.start[1:] >= spans.end[:-1]).all(), "spans overlap"
    assert steps.begin <= spans.start[0]
    assert spans.end[-1] <= steps.end
    assert (spans.end - spans.start).sum() == steps.end - steps.begin, "spans do not cover the window"
    assert {regime: spans.of(regime).total() for regime in REGIMES} == recording.account.ns
    if recording.on_device:
        assert by_gaps(recording) == recording.account.ns


def by_gaps(recording):
    """Returns the account of a device run, computed without spans: from the busy time and the columns of the gaps."""
    gaps = recording.gaps
    ns = {regime: recording.busy[regime].total() if regime in recording.busy else 0 for regime in REGIMES}
    for activity in Activity:
        known = activity is not Activity.OTHER or recording.host.recorded
        regime = REGIME_OF_ACTIVITY[activity] if known else Regime.UNEXPLAINED
        ns[regime] += int(gaps.by_activity.of(activity).sum())
    # Waits are charged with the dispatching and the latency of a gap first, then with its stall.
    charged = int(gaps.sync_bubble.sum())
    of_stalls = int(np.maximum(gaps.sync_bubble - gaps.by_activity.of(Activity.DISPATCH) - gaps.latency, 0).sum())
    ns[Regime.SYNC] += charged
    ns[Regime.LAUNCH] += int(gaps.latency.sum()) - (charged - of_stalls)
    ns[Regime.UNEXPLAINED] -= of_stalls
    pauses = int(gaps.queued[gaps.queued < LONGEST_DEVICE_PAUSE_NS].sum())
    ns[Regime.UNDERFILLED] += pauses
    ns[Regime.UNEXPLAINED] += int(gaps.queued.sum()) - pauses + int(gaps.stalled.sum())
    collectives = recording.account.ns[Regime.COMMUNICATION] - ns[Regime.COMMUNICATION]
    ns[Regime.COMMUNICATION] += collectives
    ns[Regime.HOST] -= collectives
    return ns


@pytest.mark.parametrize("name", DRAWINGS)
def test_spans_cover_the_window_without_overlap(name):
    check(recorded(drawn_trace(DRAWINGS[name])))


def test_spans_cover_the_time_in_which_their_owner_ran():
    """0 to 400 us the loader, then 600 us of kernels, in each step."""
    recording = recorded(drawn_trace(DRAWINGS["waits for data"]))
    waits = recording.owned_spans.of(Regime.INPUT)
    assert (waits.starts % 1_000_000 == 0).all()
    assert (waits.ends - waits.starts <= 400_000).all()
    assert int(waits.total()) == recording.account.ns[Regime.INPUT]
    assert waits.ends[-1] < recording.steps.end


def test_operators_that_a_loader_interrupts_keep_the_time_outside_it():
    """The loader runs inside the first operator of each step; the rest of the operator is compute."""
    recording = recorded(drawn_trace(DRAWINGS["operators on the CPU that a loader interrupts"], deviceProperties=[]))
    account = recording.account
    shares = {regime: round(account.share(regime), 3) for regime in REGIMES if account.ns[regime]}
    assert shares == {Regime.INPUT: 0.105, Regime.COMPUTE: 0.702, Regime.LAUNCH: 0.175, Regime.HOST: 0.018}


@pytest.mark.skipif(not PUBLIC, reason="TB_BOTTLENECK_TRACES names no directory of traces")
@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.name)
def test_on_public_recordings_too(path):
    recording = recorded(load(str(path)))
    if recording is None:
        pytest.skip("no steps were recorded")
    check(recording)


def test_each_steps_account_sums_to_the_step():
    recording = recorded(drawn_trace(DRAWINGS["waits for data"]))
    edges = recording.steps.edges
    owned = sum(recording.owned_spans.covered(edges[:-1], edges[1:]).values())
    assert np.array_equal(owned, recording.steps.durations)
