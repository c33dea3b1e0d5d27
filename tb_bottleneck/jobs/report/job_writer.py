"""Writes the saved report of each job that is judged."""

import logging
from collections.abc import Iterator, Mapping, Sequence

from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.report.rank_table import rank_table, step_table
from tb_bottleneck.jobs.report.saved_job import JobTables, saved_path, write
from tb_bottleneck.report.job_members import jobs_in
from tb_bottleneck.schema import bottleneck_pb2 as pb

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
