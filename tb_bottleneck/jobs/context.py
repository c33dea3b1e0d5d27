"""A job with all data that its analysis derives: pairs, clocks, wire times (times of transfers), graph, and the replay
without changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_bottleneck.base.intervals import union
from tb_bottleneck.jobs.group_kinds import Grid, grid_of
from tb_bottleneck.jobs.own_table import OwnTable, amounts_of, expected_device, own_table_of
from tb_bottleneck.jobs.pairing.clocks import Clocks, align_clocks, contradicted, hosts_of
from tb_bottleneck.jobs.pairing.job_table import JobTable, job_table
from tb_bottleneck.jobs.pairing.pairs import P2P, Pairs, pairs_of
from tb_bottleneck.jobs.pairing.unrecorded_barriers import with_barriers
from tb_bottleneck.jobs.replay.job_graph import JobGraph, cyclic_pairs, job_graph
from tb_bottleneck.jobs.replay.missing_ranks import CompleteGraph, as_recorded, complete_graph
from tb_bottleneck.jobs.replay.sweep import Result
from tb_bottleneck.jobs.replay.unrecorded_arrivals import (
    are_small,
    begins_of,
    with_small_delays,
    with_unrecorded_arrivals,
)
from tb_bottleneck.jobs.replay.wire_times import (
    EARLY_SHARE,
    WireTimes,
    limited_by_progress,
    times_at_places,
    unpaired_transfers,
    wire_times_of,
)
from tb_bottleneck.jobs.summary.rank_summary import RankSummary
from tb_bottleneck.trace.table import Floats, Ints

# Largest relative difference between the replay of the unchanged job and the recording.
MAX_REPLAY_ERROR = 0.03
# Longer than any window, so that the times of all ranks fit on one axis.
_APART_NS = 1 << 42


@dataclass(frozen=True, eq=False)
class JobContext:
    """The analysis of one job. `job` is the table of its recorded ranks and their communications; everything else is
    computed from it on first use and cached."""

    job: JobTable

    @classmethod
    def of(cls, summaries: Sequence[RankSummary]) -> "JobContext":
        """Returns the analysis of the job with these rank summaries, in any order. Barriers that were not recorded are
        added if the replay with them differs from the recording by at most MAX_REPLAY_ERROR."""
        found = cls(job_table(summaries))
        other = cls(with_barriers(found.job, found.clocks, found.graph.points))
        return found if other.job is found.job or other.error > MAX_REPLAY_ERROR else other

    @cached_property
    def _aligned(self) -> tuple[Pairs, Clocks]:
        """The pairs and the clocks of the ranks. A pair is left out as wrong if it contradicts the clocks or belongs to
        a cycle of waits."""
        pairs = pairs_of(self.job)
        clocks = align_clocks(self.job, pairs)
        refuted = contradicted(self.job, pairs, clocks)
        if refuted.any():
            pairs = pairs.without(refuted)
            clocks = align_clocks(self.job, pairs)
        wrong = cyclic_pairs(job_graph(self.job, pairs, clocks), pairs)
        return (pairs.without(wrong), clocks) if wrong.any() else (pairs, clocks)

    @property
    def pairs(self) -> Pairs:
        """For each operation of several ranks, such as an all-reduce, the rows of these ranks."""
        return self._aligned[0]

    @property
    def clocks(self) -> Clocks:
        """The offsets of the ranks' clocks from the common clock of the job."""
        return self._aligned[1]

    @property
    def wrong_share(self) -> float:
        """The share (0 to 1) of all rows that are left out because their pair is wrong: its rows contradict each other
        or the clocks, or it belongs to a cycle of waits."""
        return self.pairs.wrong / max(len(self.job.rows), 1)

    @cached_property
    def hosts(self) -> Ints:
        """The number of the host of each rank; -1 if it is not known."""
        return hosts_of(self.job)

    @cached_property
    def grid(self) -> Grid:
        """The kinds of the groups, and the pipeline stage of each rank."""
        return grid_of(self.job, self.pairs)

    @cached_property
    def wires(self) -> WireTimes:
        """The time of waiting and the time of the transfer of each row (a communication of one rank)."""
        wires = wire_times_of(self.job, self.pairs, self.clocks, self.hosts, self.grid.kinds)
        return limited_by_progress(wires, self.job, self.pairs, self.clocks, self.graph.points)

    @cached_property
    def unpaired(self) -> tuple[Ints, Floats]:
        """The rows of operations in which only one rank was recorded, and an upper limit (ns) of the transfer time of
        each of these rows (see unpaired_transfers)."""
        return unpaired_transfers(self.job, self.pairs, self.grid.kinds)

    @cached_property
    def usual_messages(self) -> tuple[Ints, Floats]:
        """The rows of messages whose other rank was not recorded, and their median times in ns over all steps (see
        times_at_places). These times include the usual wait for the other stage of the pipeline."""
        return self._messages, times_at_places(self.job, self._messages, 0.5)

    @cached_property
    def early_messages(self) -> tuple[Ints, Floats]:
        """The rows of `usual_messages`, and the times (ns) of these messages in steps in which the other stage is
        early: the quantile EARLY_SHARE over all steps."""
        return self._messages, times_at_places(self.job, self._messages, EARLY_SHARE)

    @cached_property
    def _messages(self) -> Ints:
        rows = self.unpaired[0]
        return rows[np.isin(self.job.rows.operation[rows], P2P)]

    @cached_property
    def graph(self) -> JobGraph:
        """The dependency graph of the recorded ranks (see JobGraph)."""
        return job_graph(self.job, self.pairs, self.clocks)

    @cached_property
    def begins(self) -> tuple[Floats, Floats]:
        """For each pair the start of its transfer on the common clock, and the delay of this start by unrecorded ranks,
        both in ns (see begins_of)."""
        return begins_of(self.job, self.pairs, self.clocks, self.wires)

    @cached_property
    def recorded(self) -> CompleteGraph:
        """The dependency graph of the recorded ranks, without waits for missing ranks."""
        return as_recorded(self.graph, self.pairs)

    @cached_property
    def complete(self) -> CompleteGraph:
        """The dependency graph with the missing ranks (ranks that were not recorded). The missing ranks behave like
        recorded peers if the replay then reproduces the recording. Otherwise, they arrive a fixed time after the last
        recorded rank if they were only a little late (see are_small), or else at the times that follow from the
        recorded waits (see with_unrecorded_arrivals)."""
        if self._error(self.unhindered) <= MAX_REPLAY_ERROR:
            return self.unhindered
        if are_small(self.job, self.pairs, self.clocks, self.begins[1]):
            return as_recorded(with_small_delays(self.graph, self.begins[1]), self.pairs)
        waiting = with_unrecorded_arrivals(self.graph, self.job, self.pairs, *self.begins)
        return as_recorded(waiting, self.pairs) if waiting is not self.graph else self.unhindered

    @cached_property
    def unhindered(self) -> CompleteGraph:
        """The dependency graph if no missing rank arrives late, as after a fix that is applied to all ranks."""
        recorded = self.recorded
        found = complete_graph(self.job, self.pairs, self.clocks, self.grid, recorded)
        if found is not recorded and self._error(found) > max(MAX_REPLAY_ERROR, self._error(recorded)):
            return recorded
        return found

    def _error(self, graph: CompleteGraph) -> float:
        """Returns the relative error of a replay of `graph` with the recorded times."""
        length = graph.simulated(self.graph.points.own, self.wires.wire, self.graph.tail).length
        return abs(length / self.recorded_ns - 1)

    @cached_property
    def own(self) -> OwnTable:
        """The own time (time without waiting for other ranks) by rank, step and kind."""
        return own_table_of(self.job, self.graph.points, self.grid)

    @cached_property
    def amounts(self) -> Floats:
        """The amount of work of each rank in each step, of shape (ranks, steps): elements of operators or uploaded
        bytes. NaN if it is not known."""
        return amounts_of(self.job, self.own)

    @cached_property
    def expected_device(self) -> Floats:
        """The device time in ns that peers need for the same amount of work, of shape (ranks, steps)."""
        return expected_device(self.own, self.amounts, self.grid)

    @cached_property
    def replay(self) -> Result:
        """The result of the simulation of the job without changes, including missing ranks."""
        return self.complete.simulated(self.graph.points.own, self.wires.wire, self.graph.tail)

    @cached_property
    def recorded_ns(self) -> float:
        """The time in ns from the start of the first window to the end of the last window, on the common clock."""
        return float((self.graph.begin + self.graph.recorded).max() - self.graph.begin.min())

    @property
    def error(self) -> float:
        """The relative error of the replay: abs(replayed length of the job / recorded length - 1)."""
        return abs(self.replay.length / self.recorded_ns - 1)

    @cached_property
    def step_ns(self) -> float:
        """The median over all recorded steps of all ranks of the step time, in ns."""
        return float(np.median(np.concatenate([np.diff(summary.edges) for summary in self.job.summaries])))

    @cached_property
    def steps(self) -> float:
        """Mean number of judged steps of a rank."""
        return float(np.mean([summary.steps for summary in self.job.summaries]))

    @cached_property
    def waited(self) -> tuple[Floats, Floats]:
        """Two arrays with one time (ns) per row: how long its rank is blocked by this communication because other ranks
        have not arrived, and how long the rank is blocked because the transfer is running."""
        points, rows = self.graph.points, self.job.rows
        waits = np.flatnonzero(points.resumes)
        apart = points.rank[waits] * _APART_NS
        exposed = union(apart + points.reached[waits].astype(np.int64), apart + points.time[waits].astype(np.int64))
        since = rows.rank * _APART_NS - np.array([summary.facts.begin_ns for summary in self.job.summaries])[rows.rank]
        transfer = rows.end + since - self.wires.wire.astype(np.int64)
        spans = ((rows.start + since, transfer), (transfer, rows.end + since))
        waited, transferred = (exposed.covered(*span).astype(np.float64) for span in spans)
        return waited, transferred
