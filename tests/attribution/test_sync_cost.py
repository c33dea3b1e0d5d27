"""Waits are charged like in a loop over waits and gaps, but in bounded time and memory."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_bottleneck.attribution import sync_cost
from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.sync_cost import NEVER, RETURN_LAG_NS, ChargeableGaps, charge
from tb_bottleneck.base.intervals import Spans, union


class Dispatching:
    """A host with one thread, 0, that dispatches at given times; thread -1 means none."""

    def __init__(self, spans):
        self.spans = spans

    def by_thread_group(self, threads):
        yield threads == 0, {Activity.DISPATCH: self.spans}


def chargeable_gaps(gaps, until, thread, latency, dispatching, frees=()):
    starts, ends = (np.array(side, np.int64) for side in zip(*gaps, strict=True))
    until, thread, latency = (np.array(column, np.int64) for column in (until, thread, latency))
    dispatched = np.where(thread == 0, dispatching.covered(starts, until), 0)
    return ChargeableGaps(Spans(starts, ends), until, thread, dispatched + latency, latency, np.array(frees, np.int64))


def slowly(gaps, dispatching, over, length):
    """Reference implementation: wait by wait, gap by gap, as the module's docstring describes it."""
    charged_gap = [0] * len(gaps.idle)
    charged_wait = [0] * len(over)
    for row, (end, budget) in enumerate(zip(over.tolist(), length.tolist(), strict=True)):
        limit = min((free for free in gaps.frees.tolist() if free >= end), default=int(NEVER))
        reached = [gap for gap in range(len(gaps.idle)) if gaps.idle.ends[gap] > end]
        if reached and gaps.idle.starts[reached[0]] > end + RETURN_LAG_NS:
            continue
        for gap in reached:
            start = int(gaps.idle.starts[gap])
            if budget <= 0 or start >= limit:
                break
            begin = max(end, start)
            stop = max(min(int(gaps.until[gap]), begin + budget), begin)
            dispatched = int(dispatching.covered(begin, stop)) if gaps.thread[gap] == 0 else 0
            budget -= stop - begin
            latency = min(budget, int(gaps.latency[gap]))
            budget -= latency
            before = charged_gap[gap]
            charged_gap[gap] = min(before + dispatched + latency, int(gaps.limit[gap]))
            charged_wait[row] += charged_gap[gap] - before
    return charged_wait, charged_gap


times = st.integers(0, 400_000)
spans = st.lists(st.tuples(times, st.integers(1, 60_000)), max_size=8)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.data())
def test_as_a_loop_would_charge(data):
    edges = sorted(data.draw(st.sets(times, min_size=2, max_size=20)))
    idle = list(zip(edges[:-1:2], edges[1::2], strict=False))
    busy = data.draw(spans)
    dispatching = union([begin for begin, _ in busy], [begin + length for begin, length in busy])
    until = [data.draw(st.integers(begin, end)) for begin, end in idle]
    latency = [data.draw(st.integers(0, end - at)) for (_, end), at in zip(idle, until, strict=True)]
    thread = [data.draw(st.sampled_from([0, 0, -1])) for _ in idle]
    frees = sorted(data.draw(st.lists(times, max_size=2)))
    gaps = chargeable_gaps(idle, until, thread, latency, dispatching, frees)
    waits = sorted(data.draw(st.lists(st.tuples(times, st.integers(0, 200_000)), max_size=6)))
    over, length = np.array([a for a, _ in waits], np.int64), np.array([n for _, n in waits], np.int64)
    costs, by_gap = charge(gaps, Dispatching(dispatching), np.arange(len(waits)), over, length)
    assert (costs.charged.tolist(), by_gap.tolist()) == slowly(gaps, dispatching, over, length)


def test_a_wait_is_charged_with_the_idle_dispatching_after_it_up_to_its_length():
    """
    wait  ####.................
    host  ....dddddd..dddd.....     d: dispatching
    gpu   ....______kk____kk...     _: idle       → 4 of the first gap, none of the second: the budget is used up
    """
    dispatching = Spans(np.array([4, 12]), np.array([10, 16]))
    gaps = chargeable_gaps([(4, 10), (12, 16)], [10, 16], [0, 0], [0, 0], dispatching)
    waits, by_gap = charge(gaps, Dispatching(dispatching), np.array([7]), np.array([4]), np.array([4]))
    assert (waits.charged.tolist(), waits.call.tolist(), by_gap.tolist()) == ([4], [7], [4, 0])


@pytest.mark.parametrize("most", [4_000_000, 100_000])
def test_many_waits_that_reach_many_gaps_are_bounded(monkeypatch, most):
    """Thousands of waits end at the same time before thousands of gaps; a loop would visit all pairs."""
    monkeypatch.setattr(sync_cost, "MAX_PAIRS", most)
    count = 5_000
    starts = np.arange(count) * 100 + 1_000
    dispatching, none = Spans(starts, starts + 50), [0] * count
    gaps = chargeable_gaps(list(zip(starts, starts + 50, strict=True)), starts + 50, none, none, dispatching)
    over, length = np.full(count, 1_000), np.full(count, 10**9)
    began = time.process_time()
    waits, by_gap = charge(gaps, Dispatching(dispatching), np.arange(count), over, length)
    assert time.process_time() - began < 20
    assert waits.charged.sum() == by_gap.sum() <= 50 * count
    assert (by_gap <= 50).all()
