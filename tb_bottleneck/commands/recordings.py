"""Commands that analyse recordings: their common arguments, and the analysis, on this machine or on a cluster."""

import argparse
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.commands.terminal import progress_bar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tb_bottleneck.live.post_mortem import PostMortem
    from tb_bottleneck.schema.bottleneck_pb2 import Job, Report
    from tb_bottleneck.text.table_rows import Row

MAX_WORKERS = 1024
MAX_PARENTS = 5
"""Folders above that of a recording in which a review is looked for."""
_PATTERNS = (
    "traces (*.json, *.json.gz, *.json.zst, *.json.lz4), event files of the monitor and snapshots (*.pickle), "
    "at any depth"
)


def add_recordings(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of a command that analyses recordings, as `analysed` needs them."""
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="a trace, an event file of the monitor, a snapshot of the CUDA allocator (*.pickle), or a directory, in "
        "which all of them are searched recursively",
    )
    parser.add_argument(
        "--no-cache", action="store_true", help="analyse every trace again, and do not store the report"
    )
    _add_places(parser)


def _add_places(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments that say where recordings are analysed if there are many."""
    places = parser.add_argument_group("many recordings").add_mutually_exclusive_group()
    places.add_argument(
        "--processes",
        type=_count,
        default=0,
        metavar="N",
        help="local processes; by default one per core if that saves time, 1 for this process only",
    )
    places.add_argument(
        "--workers", type=_count, default=0, metavar="N", help="start a Dask cluster here with N workers"
    )
    places.add_argument(
        "--scheduler",
        default="",
        metavar="ADDRESS",
        help="use the Dask cluster of this scheduler, as in tcp://node1:8786; default: DASK_SCHEDULER_ADDRESS",
    )
    places.add_argument(
        "--scheduler-file", default="", metavar="FILE", help="use the Dask cluster whose scheduler wrote this file"
    )


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 12 and 0 < int(text) <= MAX_WORKERS):
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number from 1 to {MAX_WORKERS}")
    return int(text)


@dataclass(frozen=True)
class Analysis:
    """The result of analysing recordings: the reports, the path of the recording of each report, the jobs to which
    these recordings belong, and a sentence for each problem."""

    paths: list[str]  # of the reports
    reports: "list[Report]"
    jobs: "list[Job]"
    problems: list[str]

    def rows(self, sort: str | None, states: "Mapping[int, str] | None" = None) -> "list[Row]":
        """Returns one row per training, sorted by `sort`. `states` maps positions in `reports` to review states."""
        from tb_bottleneck.report.jobs import jobs_in
        from tb_bottleneck.report.trainings import judged_jobs, trainings_of
        from tb_bottleneck.text.table_rows import rows_of

        jobs = dict(zip(map(tuple, jobs_in(self.reports)), self.jobs, strict=True)) if self.jobs else {}
        located = [(os.path.dirname(path), report) for path, report in zip(self.paths, self.reports, strict=True)]
        trainings = trainings_of(located, judged_jobs(jobs, self.reports))
        return rows_of(self.reports, sort, trainings=trainings, jobs=jobs, states=states)


def analysed(options: argparse.Namespace) -> Analysis:
    """Analyses all recordings at `options.paths`. Raises NotFound if there are none."""
    # numpy would start threads for matrix multiplications, which took 0.1 s of CPU time and are not needed.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    recordings = [recording for path in options.paths for recording in recordings_at(path)]
    if not recordings:
        raise NotFound(f"no recording was found under {', '.join(options.paths)}; looked for {_PATTERNS}")
    return _together(recordings, options)


def _together(recordings: list[tuple[str, str]], options: argparse.Namespace) -> Analysis:
    from tb_bottleneck.jobs.execution.rank_analysis import Task
    from tb_bottleneck.jobs.execution.run import analyse_all
    from tb_bottleneck.schema.bottleneck_pb2 import Report

    several = len(recordings) > 1
    write, for_list = getattr(options, "write", False), getattr(options, "for_list", False)
    tasks = [Task(path, run, not options.no_cache, several, write, for_list) for path, run in recordings]
    places = {name: getattr(options, name) for name in ("processes", "scheduler", "scheduler_file", "workers")}
    results = analyse_all(tasks, progress_bar(), **places)
    reports = [Report.FromString(result.report) for result in results]
    problems = [result.problem for result in results if result.problem]
    paths = [path for path, _ in recordings]
    if not several:
        return Analysis(paths, _measured(paths, reports), [], problems)
    from tb_bottleneck.jobs.report.health import JobWriter
    from tb_bottleneck.jobs.report.job_report import judged_together

    writer = JobWriter(reports, paths) if write else None
    directories = [os.path.dirname(path) for path in paths]
    joined, jobs = judged_together(
        directories, reports, [result.summary for result in results], writer.write if writer is not None else None
    )
    return Analysis(paths, _measured(paths, joined), jobs, problems + (writer.problems if writer is not None else []))


def _measured(paths: list[str], reports: "list[Report]") -> "list[Report]":
    """Returns `reports` with the gains that trials measured. The notes about a recording are those of the nearest
    folder above it that has a review."""
    folders = [os.path.dirname(os.path.abspath(path)) for path in paths]
    roots = {folder: _reviewed_folder(folder) for folder in folders}
    if not any(roots.values()):
        return reports
    from tb_bottleneck.review.measured import with_measured_gains
    from tb_bottleneck.review.notes import reviews_of
    from tb_bottleneck.review.store import read_notes
    from tb_bottleneck.sources.logdir import RecordingFile

    notes = {root: read_notes(root).notes for root in filter(None, set(roots.values()))}
    result = []
    for path, folder, report in zip(paths, folders, reports, strict=True):
        recording = RecordingFile(path, os.path.relpath(folder, roots[folder] or folder), report.source, 0, 0)
        review = reviews_of(notes.get(roots[folder] or "", ()), [recording]).get(recording)
        result.append(with_measured_gains(report, review))
    return result


def _reviewed_folder(folder: str) -> str | None:
    from tb_bottleneck.sources.file_system import REVIEW_DIRECTORY

    parents = [folder]
    while len(parents) <= MAX_PARENTS and parents[-1] != os.path.dirname(parents[-1]):
        parents.append(os.path.dirname(parents[-1]))
    return next((parent for parent in parents if os.path.isdir(os.path.join(parent, REVIEW_DIRECTORY))), None)


def unreadable(reports: "list[Report]") -> list[str]:
    """Returns one sentence for each recording that could not be read."""
    return [f"{_name(report)} is unreadable" for report in reports if report.health.status == "unreadable"]


def print_problems(problems: list[str]) -> None:
    """Prints each problem on a line of standard error."""
    if problems:
        from tb_bottleneck.base.units import one_line

        for problem in problems:
            print(f"tb-bottleneck: {one_line(problem)}", file=sys.stderr)


def _name(report: "Report") -> str:
    return report.source if report.run in ("", ".") else f"{report.run}/{report.source}"


def hangs_at(paths: list[str]) -> "list[PostMortem]":
    """Returns what dumps of Flight Recorder show, for each of `paths` that is a folder with such dumps."""
    from tb_bottleneck.sources.flight_recorder import has_dumps

    folders = [path for path in paths if has_dumps(path)]
    if not folders:
        return []
    from tb_bottleneck.live.post_mortem import post_mortem

    return [found for found in map(post_mortem, folders) if found is not None]


def recordings_at(path: str) -> list[tuple[str, str]]:
    """Returns the pair (path of the file, name of the run) for every recording at `path`, a file or a directory. Raises
    NotFound if `path` does not exist."""
    from tb_bottleneck.sources.paths import status_of

    if status_of(path).kind == "file":
        return [(path, ".")]
    from tb_bottleneck.sources.logdir import scan

    listing = scan(path)
    print_problems(list(listing.problems))
    return [(recording.path, recording.run) for recording in listing.recordings]
