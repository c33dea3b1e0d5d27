"""Clocks of hosts are aligned with a stated accuracy, or not at all."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.simulated_jobs import context_of, simulated

from tb_bottleneck.jobs.pairing.clocks import MIN_COLLECTIVES, align_clocks, hosts_of
from tb_bottleneck.jobs.pairing.job_table import job_table
from tb_bottleneck.jobs.pairing.pairs import pairs_of


def aligned(summaries):
    job = job_table(summaries)
    return job, align_clocks(job, pairs_of(job))


def shifted(summaries, host, ns):
    return [
        replace(s, facts=replace(s.facts, begin_ns=s.facts.begin_ns + ns)) if s.facts.host == host else s
        for s in summaries
    ]


@pytest.mark.parametrize("topology", ["data", "sharded", "tensor", "experts", "pipeline"])
def test_a_shift_of_a_host_is_found_within_the_stated_error(topology):
    summaries = simulated(topology)
    (_, before), (_, after) = aligned(summaries), aligned(shifted(summaries, "host1", 37_000_000))
    assert after.error is not None
    change = after.offset - before.offset
    assert change[:4].tolist() == [0, 0, 0, 0]
    assert change[4:] == pytest.approx(37e6, abs=max(2 * after.error, 100))


def test_a_drift_is_found():
    summaries = simulated(steps=30)
    rate = 20e-6
    drifting = []
    for summary in summaries:
        if summary.facts.host == "host1":
            rows = summary.communications
            stretch = {name: (getattr(rows, name) * (1 + rate)).astype(np.int64) for name in ("start", "end")}
            summary = replace(summary, communications=replace(rows, **stretch))
        drifting.append(summary)
    _, clocks = aligned(drifting)
    assert clocks.drift[7] - clocks.drift[0] == pytest.approx(rate, rel=0.1)


def test_a_clock_that_is_set_during_the_recording_gives_no_alignment():
    summaries = simulated(steps=30)
    rows = summaries[4].communications
    middle = rows.start > rows.start[len(rows) // 2]
    jump = {name: getattr(rows, name) + 500_000_000 * middle for name in ("start", "end")}
    stepped = [
        replace(s, communications=replace(s.communications, **jump)) if s.facts.host == "host1" else s
        for s in summaries
    ]
    _, clocks = aligned(stepped)
    assert (clocks.error, clocks.because) == (None, "clock_stepped")
    assert not clocks.drift.any(), "a step is not a drift"


def test_few_collectives_give_no_alignment():
    _, clocks = aligned(simulated(steps=1))
    assert (clocks.error, clocks.because) == (None, "too_few_collectives")
    assert MIN_COLLECTIVES > 4, "collectives of one step"


def test_hosts_without_a_common_collective_are_not_aligned():
    summaries = simulated("tensor")
    inner = [
        replace(s, communications=s.communications.take(s.communications.lane == 20), points=s.points.take(slice(0, 0)))
        for s in summaries
    ]
    _, clocks = aligned(inner)
    assert (clocks.error, clocks.because) == (None, "hosts_not_connected")


def test_hosts_are_numbers_in_order_of_rank():
    assert hosts_of(job_table(simulated())).tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    unknown = [replace(s, facts=replace(s.facts, host="")) for s in simulated()]
    assert hosts_of(job_table(unknown)).tolist() == [-1] * 8
    assert context_of(unknown).error < 0.001, "each rank has a clock of its own then"


def test_ranks_of_one_host_share_its_clock_however_late_they_leave():
    """Threads of Gloo that wait for a core end their rows tens of ms late. No clock drifts by that."""
    random = np.random.default_rng(1)
    late = []
    for summary in simulated(steps=30):
        rows = summary.communications
        end = rows.end + random.integers(0, 20_000_000, len(rows))
        facts = replace(summary.facts, host="host0")
        late.append(replace(summary, communications=replace(rows, end=end), facts=facts))
    _, clocks = aligned(late)
    assert (clocks.error, clocks.because) == (0.0, "")
    assert not clocks.offset.any()
    assert not clocks.drift.any()


def test_torchrun_gives_each_host_consecutive_ranks():
    unnamed = [replace(s, facts=replace(s.facts, host="", local_size=2)) for s in simulated()]
    assert hosts_of(job_table(unnamed)).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert hosts_of(job_table(unnamed[3:7])).tolist() == [0, 1, 1, 2], "missing ranks leave their hosts as they are"
    partly = [replace(s, facts=replace(s.facts, local_size=0)) if n == 5 else s for n, s in enumerate(unnamed)]
    assert hosts_of(job_table(partly)).tolist() == [-1] * 8
