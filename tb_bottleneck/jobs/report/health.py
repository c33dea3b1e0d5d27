"""The health of the analysis of a job, and the saved reports of the jobs that are judged."""

import logging
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tb_bottleneck.base.text import share_text
from tb_bottleneck.jobs.context import MAX_REPLAY_ERROR, JobContext
from tb_bottleneck.jobs.report.rank_table import rank_table, step_table
from tb_bottleneck.jobs.report.saved_job import JobTables, saved_path, write
from tb_bottleneck.jobs.summary.rank_summary import RankSummary
from tb_bottleneck.knowledge.texts import job_texts
from tb_bottleneck.report.jobs import jobs_in
from tb_bottleneck.schema import bottleneck_pb2 as pb

# Jobs are degraded from this share of wrong or unpaired rows on, and nothing is claimed from the second share on.
DEGRADED, REFUSED = 0.01, 0.05
# A damaged recording whose steps have less than this share of the communications of its other steps is cut short: with
# more than 5 % of the rows unpaired there are no figures of waiting.
MIN_STEADY = 0.95


def is_cut_short(summary: RankSummary) -> bool:
    """Returns True if a part of the steps is missing in a damaged recording. Such a rank counts as missing."""
    calls = np.bincount(summary.communications.step, minlength=summary.steps)
    return summary.facts.lost and bool(calls.min() < MIN_STEADY * calls.max() or not calls.max())


def wrong_share(context: JobContext) -> float:
    """Returns the share of the rows in pairs that contradict themselves."""
    return context.pairs.wrong / max(len(context.job.rows), 1)


def unpaired_share(context: JobContext) -> float:
    """Returns the share of the rows without a counterpart on other recorded ranks."""
    return context.pairs.unpaired / max(len(context.job.rows), 1)


def is_trusted(context: JobContext) -> bool:
    """Returns True if enough is paired, and the replay reproduces the recording."""
    return context.pairs.count > 0 and wrong_share(context) < REFUSED and context.error <= MAX_REPLAY_ERROR


def health_of(context: JobContext) -> pb.Health:
    """Returns the health: missing ranks, wrong pairs, clocks, replay."""
    reasons = list(_reasons(context))
    return pb.Health(status="degraded" if reasons else "ok", reasons=reasons)


def _reasons(context: JobContext) -> Iterator[pb.HealthReason]:
    job = context.job
    missing = job.world_size - len(job.ranks)
    if missing:
        yield _reason("missing", count=str(missing), world=str(job.world_size))
    if not context.pairs.count:
        yield _reason("nothing_paired")
        return
    if wrong_share(context) >= DEGRADED:
        yield _reason("wrong_pairs", share=share_text(wrong_share(context)))
    if unpaired_share(context) >= DEGRADED:
        yield _reason("unpaired", share=share_text(unpaired_share(context)))
    if context.clocks.because:
        yield _reason("clocks", why=job_texts().why[context.clocks.because])
    if context.error > MAX_REPLAY_ERROR:
        yield _reason("replay", share=share_text(context.error))
    if any(summary.facts.cut for summary in job.summaries):
        yield _reason("cut")


def _reason(code: str, **values: str) -> pb.HealthReason:
    texts = job_texts()
    return pb.HealthReason(code=f"job_{code}", detail=texts.health[code].substitute(values), fix=texts.health_fix[code])


_log = logging.getLogger(__name__)


class JobWriter:
    """Writes the jobs in the order of `jobs_in`. `problems` has a sentence for each that could not be written."""

    def __init__(self, reports: Sequence[pb.Report], paths: Sequence[str]) -> None:
        self.problems: list[str] = []
        self._traces: Iterator[dict[int, str]] = iter(
            [{reports[position].rank: paths[position] for position in members} for members in jobs_in(reports)]
        )

    def write(self, job: pb.Job, reports: Mapping[int, pb.Report], context: JobContext | None) -> None:
        """Writes the report of the next job."""
        traces = next(self._traces)
        try:
            tables = tables_of(job, reports, context)
            paths = [traces[rank] for rank in tables.ranks.rank]
            write(tables, paths)
        except OSError as error:
            self.problems.append(f"{saved_path(list(traces.values()))} could not be written: {error.strerror}")
        except Exception as error:  # must not cost what is printed
            _log.exception("the report of a job could not be saved")
            self.problems.append(f"the report of a job could not be saved: {type(error).__name__}")


def tables_of(job: pb.Job, reports: Mapping[int, pb.Report], context: JobContext | None) -> JobTables:
    """Returns a job with its tables."""
    return JobTables(job, rank_table(reports, context), step_table(context) if context is not None else None)
