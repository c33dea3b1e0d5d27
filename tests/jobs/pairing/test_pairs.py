"""Collectives and messages are paired by the best key that all ranks have; what contradicts itself is left out."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.simulated_jobs import context_of, simulated, without_rows
from simulate.jobs.topologies import Faults

from tb_bottleneck.jobs.pairing.clocks import align_clocks, contradicted
from tb_bottleneck.jobs.pairing.job_table import job_table
from tb_bottleneck.jobs.pairing.pairs import pairs_of
from tb_bottleneck.jobs.summary.rank_summary import Operation


def with_columns(summary, **columns):
    return replace(summary, communications=replace(summary.communications, **columns))


def without_names(summary):
    """Returns a summary as of a recording without process groups."""
    groups = tuple(replace(group, name="", description="", ranks=(), size=0) for group in summary.groups)
    return replace(without_sequences(summary), groups=groups)


def without_sequences(summary):
    return with_columns(summary, sequence=np.full(len(summary.communications), -1))


def paired(summaries):
    job = job_table(summaries)
    return job, pairs_of(job)


def assert_right(job, pairs, members):
    """Every pair has all members, of one step and one position in the program."""
    assert (np.bincount(pairs.pair[pairs.pair >= 0]) == members).all()
    for number in range(pairs.count):
        rows = np.flatnonzero(pairs.pair == number)
        assert len(set(job.rows.step[rows].tolist())) == 1
        assert len(set(job.rows.order[rows].tolist())) == 1


def test_comms_id_alone_is_a_key():
    summaries = simulated()
    ids = [with_columns(without_sequences(s), key=s.communications.order * 7 - 3) for s in summaries]
    job, pairs = paired(ids)
    assert (pairs.level, pairs.count) == ("id", 5 * 4)
    assert_right(job, pairs, 8)


@pytest.mark.parametrize(
    ("change", "level"), [(lambda s: s, "sequence"), (without_sequences, "order"), (without_names, "size")]
)
def test_the_next_best_key_is_used(change, level):
    job, pairs = paired([change(summary) for summary in simulated()])
    assert (pairs.level, pairs.count, pairs.wrong, pairs.unpaired) == (level, 20, 0, 0)
    assert_right(job, pairs, 8)


def test_groups_of_the_same_kind_are_not_mixed():
    job, pairs = paired([without_sequences(summary) for summary in simulated("tensor", steps=2)])
    names = [job.groups[group].name for group in job.rows.group.tolist()]
    for number in range(pairs.count):
        assert len({names[row] for row in np.flatnonzero(pairs.pair == number).tolist()}) == 1
    assert pairs.count == 2 * (2 * 24 + 4)


def test_messages_are_paired_by_sender_receiver_and_order():
    job, pairs = paired(simulated("pipeline", steps=2))
    for number in range(pairs.count):
        rows = np.flatnonzero(pairs.pair == number)
        if Operation.SEND in job.rows.operation[rows].tolist():
            assert sorted(job.rows.operation[rows].tolist()) == [Operation.SEND, Operation.RECV]
            assert job.rows.peer[rows].tolist() == [job.ranks[job.rows.rank[row]] for row in rows[::-1].tolist()]
    assert pairs.unpaired == 0


@pytest.mark.parametrize("change", [without_sequences, without_names])
def test_a_lost_row_does_not_shift_the_others(change):
    """In FSDP, gathers and scatters alternate, so that the gap shows where it is."""
    summaries = [change(summary) for summary in simulated("sharded")]
    summaries[2] = without_rows(summaries[2], [9])
    job, pairs = paired(summaries)
    for number in range(pairs.count):
        rows = np.flatnonzero(pairs.pair == number)
        assert len(set(job.rows.operation[rows].tolist())) == 1
    full = np.bincount(pairs.pair[pairs.pair >= 0]) == 8
    assert full.sum() >= pairs.count - 2
    assert context_of(summaries).error < 0.03


def test_windows_that_begin_at_different_collectives_are_shifted():
    """Without step marks: rank 1 starts three collectives later, which only the sizes and the clocks show."""
    summaries = [replace(without_sequences(summary), numbers=()) for summary in simulated("sharded")]
    summaries[1] = without_rows(summaries[1], [0, 1, 2])
    job, pairs = paired(summaries)
    assert pairs.count > 50
    assert_right_orders = [
        set(job.rows.order[pairs.pair == number].tolist()) for number in range(pairs.count)
    ]  # the order of issue is that of the whole program
    assert all(len(orders) == 1 for orders in assert_right_orders)


def test_sizes_that_differ_are_wrong():
    summaries = simulated()
    sizes = summaries[3].communications.bytes.copy()
    sizes[5] += 4
    summaries[3] = with_columns(summaries[3], bytes=sizes)
    _, pairs = paired(summaries)
    assert (pairs.count, pairs.wrong) == (19, 8)


def test_a_pair_that_is_left_before_its_last_arrival_is_excluded():
    """Two data-parallel groups without names look like one; the clocks show that they do not wait for each other."""
    fast, slow = simulated(ranks=4), simulated(ranks=4, faults=Faults(host=dict.fromkeys(range(4), 0.5)))
    facts = {"world_size": 8, "host": "host0"}
    moved = [replace(s, facts=replace(s.facts, rank=s.facts.rank + 4, **facts)) for s in slow]
    stayed = [replace(s, facts=replace(s.facts, **facts)) for s in fast]
    context = context_of([without_names(summary) for summary in (*stayed, *moved)])
    assert context.pairs.wrong > 0.5 * len(context.job.rows)


def test_pairs_by_order_that_are_not_left_together_are_excluded():
    """One rank lost the second all-reduce of each step: its later ones are paired with those before them."""
    summaries = [without_names(summary) for summary in simulated()]
    summaries[3] = without_rows(summaries[3], [1, 5, 9, 13, 17])
    context = context_of(summaries)
    assert context.pairs.wrong >= 5 * 2 * 8
    for number in range(context.pairs.count):
        rows = np.flatnonzero(context.pairs.pair == number)
        assert len(set(context.job.rows.order[rows].tolist())) == 1
    assert context.clocks.error is None or context.clocks.error < 10_000


def test_pairs_by_order_are_compared_by_their_ends_alone():
    """In two steps the rank also seems to arrive early, as a kernel that was queued: only the ends contradict."""
    summaries = [without_names(summary) for summary in simulated()]
    lost = without_rows(summaries[3], [1, 5])
    first = lost.communications.start[np.searchsorted(lost.communications.step, lost.communications.step)]
    summaries[3] = with_columns(lost, start=first)
    job, pairs = paired(summaries)
    refuted = contradicted(job, pairs, align_clocks(job, pairs))
    mixed = [len(set(job.rows.order[pairs.pair == number].tolist())) > 1 for number in range(pairs.count)]
    assert refuted.tolist() == mixed
    assert sum(mixed) == 4


def test_a_rank_that_leaves_a_collective_late_does_not_refute_the_pair():
    """On a machine whose cores are busy, a rank of Gloo can leave tens of milliseconds after the others."""
    summaries = [without_names(summary) for summary in simulated()]
    ends = summaries[3].communications.end.copy()
    ends[-1] += 50_000_000
    summaries[3] = with_columns(summaries[3], end=ends)
    context = context_of(summaries)
    assert (context.pairs.count, context.pairs.wrong) == (20, 0)


def test_missing_ranks_leave_pairs_of_the_others():
    summaries = [summary for summary in simulated() if summary.facts.rank not in (0, 5)]
    context = context_of(summaries)
    assert (context.pairs.count, context.pairs.unpaired) == (20, 0)
    assert not context.wires.complete.any()


def test_cut_lists_of_ranks_are_completed_by_other_ranks():
    summaries = simulated("tensor", steps=2)
    cut = [
        replace(s, groups=tuple(replace(group, ranks=() if s.facts.rank else group.ranks) for group in s.groups))
        for s in summaries
    ]
    job = job_table(cut)
    assert {group.name: group.ranks for group in job.groups}["t1"] == (4, 5, 6, 7)
    assert {group.name: group.ranks for group in job.groups}["t0"] == (0, 1, 2, 3)


def test_operations_that_are_counted_apart_are_told_apart():
    """Recordings converted from logs count each operation of a group alone: its first gather and first reduce are 0."""

    def counted_apart(summary):
        rows = summary.communications
        place = list(zip(rows.group.tolist(), rows.operation.tolist(), strict=True))
        return with_columns(summary, sequence=np.array([place[:n].count(of) for n, of in enumerate(place)], np.int64))

    job, pairs = paired([counted_apart(summary) for summary in simulated("sharded")])
    assert (pairs.level, pairs.wrong, pairs.unpaired) == ("sequence", 0, 0)
    assert_right(job, pairs, 8)
