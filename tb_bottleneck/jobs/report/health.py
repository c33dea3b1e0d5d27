"""The health of the analysis of a job, and a writer that saves the reports of jobs."""

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tb_bottleneck.jobs.context import MAX_REPLAY_ERROR, JobContext
from tb_bottleneck.jobs.culprits import MIN_COST
from tb_bottleneck.jobs.pairing.job_table import JobTable
from tb_bottleneck.jobs.pairing.unrecorded_barriers import is_barrier
from tb_bottleneck.jobs.report.pipeline_table import pipeline_table
from tb_bottleneck.jobs.report.rank_table import rank_table, step_table
from tb_bottleneck.jobs.report.saved_job import JobTables, saved_path, write
from tb_bottleneck.jobs.report.wording import MAX_PEERS, JobAnalysis, Reason
from tb_bottleneck.jobs.summary.rank_summary import RankSummary
from tb_bottleneck.report.jobs import jobs_in
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.trace.table import Bools, Floats

# An analysis is degraded from this share of wrong or unpaired rows on, and is not shown from the second share of wrong
# rows on. Wrong rows are left out and make the intervals of the gains wider; the error of the replay shows whether the
# remaining rows still describe the job. Both shares are chosen.
DEGRADED, REFUSED = 0.01, 0.25
# A damaged recording whose steps have less than this share of the communications of its other steps is cut short: if
# more than 5 % of the rows were unpaired, waiting could not be measured.
MIN_STEADY = 0.95
# Smallest share of the time for which waiting for unrecorded ranks is reported: the smallest cost of a cause.
MIN_LATE_SHARE = MIN_COST
# The unrecorded ranks that are named take part in at least this share of the waiting for unrecorded ranks.
MOST_LATE = 0.9


def is_cut_short(summary: RankSummary) -> bool:
    """Returns True if a damaged recording lacks a part of its steps: a step has less than MIN_STEADY times as many
    communications as another one, or no step has any. The rank of such a recording counts as missing."""
    calls = np.bincount(summary.communications.step, minlength=summary.steps)
    return summary.facts.lost and bool(calls.min() < MIN_STEADY * calls.max() or not calls.max())


def unpaired_share(context: JobContext) -> float:
    """Returns the share (0 to 1) of rows (communications of one rank) that have no pair although other ranks of their
    group were recorded. A pair is the rows of one operation on several ranks."""
    return context.pairs.unpaired / max(len(context.job.rows), 1)


def is_trusted(context: JobContext) -> bool:
    """Returns True if the analysis of the job may be shown: there are pairs, less than REFUSED of the rows are in wrong
    pairs, and the replay differs from the recording by at most MAX_REPLAY_ERROR.

    A pipeline needs no pairs (rows of one operation on several ranks), because slow stages, too few microbatches and
    slow ranks are found from the times of single ranks.
    """
    enough = context.pairs.count > 0 or context.grid.stages > 1
    return enough and context.wrong_share < REFUSED and context.error <= MAX_REPLAY_ERROR


def reasons_of(context: JobContext) -> Iterator[Reason]:
    """Yields why the analysis is degraded, for example missing ranks, wrong pairs or clocks that are not aligned;
    nothing if it is not."""
    job = context.job
    missing = job.world_size - len(job.ranks)
    if missing:
        yield "missing", {"count": missing, "world": job.world_size}
    if not context.pairs.count:
        wanted = connecting_ranks(context)
        yield ("not_connected", {"ranks": wanted}) if wanted else ("nothing_paired", {})
        return
    if context.wrong_share >= DEGRADED:
        yield "wrong_pairs", {"share": context.wrong_share}
    if unpaired_share(context) >= DEGRADED:
        yield "unpaired", {"share": unpaired_share(context)}
    yield from _unrecorded(context)
    if context.clocks.because:
        yield "clocks", {"why": context.clocks.because}
    if context.error > MAX_REPLAY_ERROR:
        yield "replay", {"share": min(context.error, 1.0)}
    if any(summary.facts.cut for summary in job.summaries):
        yield "cut", {}


def _unrecorded(context: JobContext) -> Iterator[Reason]:
    """Yields a reason for each kind of wait whose reason was not recorded: waits for missing ranks that behave like
    recorded ones, waits for missing ranks that are late, and barriers that were not recorded."""
    complete, ranks = context.complete, context.job.ranks
    if complete.missing:
        peers = complete.rank[len(ranks) :].tolist()
        like = [(rank, ranks[at]) for rank, at in zip(complete.missing, peers, strict=True)]
        yield "peers", {"like": like[:MAX_PEERS], "more": max(len(like) - MAX_PEERS, 0)}
    else:
        late, wanted = late_ranks(context)
        if late >= MIN_LATE_SHARE and wanted:
            yield "late", {"share": late, "ranks": wanted}
    barriers = waited_share(context, is_barrier(context.job))
    if barriers >= DEGRADED:
        yield "barriers", {"share": barriers}


def waited_share(context: JobContext, rows: Bools) -> float:
    """Returns the share (0 to 1) of the time of all ranks in which they wait for other ranks in the communications of
    the mask `rows`."""
    total = sum(float(summary.edges[-1] - summary.edges[0]) for summary in context.job.summaries)
    return float(context.waited[0][rows].sum()) / max(total, 1.0)


def late_ranks(context: JobContext) -> tuple[float, list[int]]:
    """Returns the share (0 to 1) of the time in which recorded ranks wait for unrecorded ranks, and the numbers of at
    most MAX_PEERS unrecorded ranks whose groups have most of these waits."""
    job, (_, late) = context.job, context.begins
    rows = context.pairs.pair >= 0
    rows[rows] = late[context.pairs.pair[rows]] > 0
    waited = np.zeros(len(job.groups))
    np.add.at(waited, job.rows.group[rows], context.waited[0][rows])
    members = {rank: {g for g, group in enumerate(job.groups) if rank in group.ranks} for rank in _missing(job, waited)}
    found: list[int] = []
    left = waited.copy()
    while members and left.sum() > (1 - MOST_LATE) * waited.sum() and len(found) < MAX_PEERS:
        best = max(members, key=lambda rank: (float(left[list(members[rank])].sum()), -rank))
        found.append(best)
        left[list(members.pop(best))] = 0.0
    return waited_share(context, rows), sorted(found)


def connecting_ranks(context: JobContext) -> list[int]:
    """Returns the numbers of a few unrecorded ranks which, if recorded, would connect all recorded ranks: each recorded
    rank shares a collective or a message with one of them. Returns an empty list if the search finds no such set of at
    most MAX_PEERS ranks."""
    job, rows = context.job, context.job.rows
    messages, recorded = rows.peer >= 0, set(job.ranks)
    partners: defaultdict[int, set[int]] = defaultdict(set)  # maps each rank to the positions of recorded ranks
    for rank, peer in np.unique(np.stack((rows.rank, rows.peer))[:, messages], axis=1).T.tolist():
        partners[peer].add(rank)
    for rank, group in np.unique(np.stack((rows.rank, rows.group))[:, ~messages], axis=1).T.tolist():
        for member in job.groups[group].ranks:
            partners[member].add(rank)
    found: list[int] = []
    left = set(range(len(job.ranks)))
    while left:
        best = max(partners.keys() - recorded, key=lambda rank: (len(partners[rank] & left), -rank), default=None)
        if best is None or not partners[best] & left:
            return []
        found.append(best)
        left -= partners[best]
    return sorted(found) if len(found) <= MAX_PEERS else []


def _missing(job: JobTable, waited: Floats) -> list[int]:
    """Returns the unrecorded ranks of the groups with waits. `waited` has the time of waiting (ns) per group."""
    return sorted({rank for group in np.flatnonzero(waited > 0) for rank in job.groups[group].ranks} - set(job.ranks))


_log = logging.getLogger(__name__)


class JobWriter:
    """Saves the reports of jobs next to their traces.

    `reports` are the reports of all recordings, `paths` the paths of these recordings. `write` must be called for each
    job in the order of `jobs_in(reports)`. `problems` has one sentence for each job that could not be saved.
    """

    def __init__(self, reports: Sequence[pb.Report], paths: Sequence[str]) -> None:
        self.problems: list[str] = []
        self._traces: Iterator[dict[int, str]] = iter(
            [{reports[position].rank: paths[position] for position in members} for members in jobs_in(reports)]
        )

    def write(self, job: pb.Job, reports: Mapping[int, pb.Report], analysis: JobAnalysis) -> None:
        """Saves the report of `job`. Call it for the jobs in the order of `jobs_in`. `reports` maps the ranks of the
        job to their reports. If saving fails, a sentence is added to `problems`, and no error is raised."""
        traces = next(self._traces)
        try:
            tables = tables_of(job, reports, analysis)
            paths = [traces[rank] for rank in tables.ranks.rank]
            write(tables, paths)
        except OSError as error:
            self.problems.append(f"{saved_path(list(traces.values()))} could not be written: {error.strerror}")
        except Exception as error:  # an error here must not prevent the printed report
            _log.exception("the report of a job could not be saved")
            self.problems.append(f"the report of a job could not be saved: {type(error).__name__}")


def tables_of(job: pb.Job, reports: Mapping[int, pb.Report], analysis: JobAnalysis) -> JobTables:
    """Returns the job with the tables of its ranks, steps and pipeline. `reports` maps rank numbers to reports.

    If the analysis is not trusted, there is only the table of ranks.
    """
    context = analysis.context
    if context is None:
        return JobTables(job, rank_table(reports, context), None, None, analysis)
    return JobTables(job, rank_table(reports, context), step_table(context), pipeline_table(context), analysis)
