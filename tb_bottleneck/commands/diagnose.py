"""`tb-bottleneck diagnose`: analyses recordings and prints one report for each."""

import argparse
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.commands.arguments import add_subparser
from tb_bottleneck.commands.terminal import progress_bar, stdout_layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tb_bottleneck.commands import Subparsers
    from tb_bottleneck.report.rendering.layout import Layout
    from tb_bottleneck.report.rendering.table_rows import Row
    from tb_bottleneck.schema.bottleneck_pb2 import Job, Report

EXAMPLES = """\
examples:
  tb-bottleneck diagnose runs/resnet/host_42.1764.pt.trace.json.gz
  tb-bottleneck diagnose runs/                       all recordings under a logdir
  tb-bottleneck diagnose runs/ --json > reports.json one object: {"reports": [...], "jobs": [...]}
  tb-bottleneck diagnose runs/ --brief               at most 1,500 characters per training, for agents and messages
  tb-bottleneck diagnose runs/mine --html report.html  a page to send
  tb-bottleneck diagnose runs/ --fail-over input=10% CI gate: exit status 1 if `input` exceeds 10 % of the time

exit status: 0; 1 if a gate fails or a recording is unreadable; 2 for wrong usage or if no recording is found

record a training with:
  with tb_bottleneck.Monitor("runs/mine"):
      for batch in loader:
          train_step(batch)

or, with torch alone (at least 19 steps):
  with torch.profiler.profile(
      schedule=torch.profiler.schedule(skip_first=10, wait=1, warmup=2, active=6, repeat=1),
      on_trace_ready=torch.profiler.tensorboard_trace_handler("runs/mine"),
      record_shapes=True,
      with_stack=True,
  ) as prof:
      for batch in loader:
          train_step(batch)
          prof.step()
"""

MANY = 20
"""With more reports than this, a hint says how to see a single report."""

MAX_WORKERS = 1024
_PATTERNS = (
    "traces (*.json, *.json.gz, *.json.zst, *.json.lz4), event files of the monitor and snapshots (*.pickle), "
    "at any depth"
)


def add(commands: "Subparsers") -> None:
    """Declares the command."""
    diagnose = add_subparser(
        commands,
        "diagnose",
        "analyse recordings: files, run directories or whole logdirs",
        "Analyses traces of torch.profiler and event files of the monitor, and prints one report for each: where "
        "the time of a step goes, why, and what to change first.",
        EXAMPLES,
    )
    add_recordings(diagnose)
    form = diagnose.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help='print one JSON object, {"reports": [...], "jobs": [...]}')
    form.add_argument(
        "--brief",
        action="store_true",
        help="print at most 1,500 characters of plain text for each training: action, gain, cause, line, fix",
    )
    diagnose.add_argument(
        "--write",
        action="store_true",
        help="also write each report to a file next to its trace, NAME.bottlenecks.json, and the report of each job "
        "next to the trace of its lowest rank, NAME.job.bottlenecks.json, which the tab shows",
    )
    diagnose.add_argument(
        "--html",
        metavar="FILE",
        help="also write the reports to one page without scripts or other files, at most 1 MB, to send to others",
    )
    diagnose.add_argument(
        "--fail-over",
        action="append",
        default=[],
        metavar="REGIME=SHARE",
        help="budget, as in input=0.10 or sync=5%%: exit with status 1 if a regime takes a larger share of the time in "
        "any recording, or if a recording has no verdict; can be repeated",
    )
    diagnose.add_argument(
        "--price-per-hour",
        type=_price,
        metavar="PRICE",
        help="price of one device of the run for an hour, in any currency: adds the cost of a million samples",
    )
    diagnose.set_defaults(run=_diagnose)


def _price(text: str) -> float:
    try:
        price = float(text)
    except ValueError:
        price = -1.0
    if not 0 < price < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r}: must be a number above 0, such as 2.50")
    return price


def add_recordings(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments that `analysed` needs."""
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


def _diagnose(options: argparse.Namespace) -> int:
    try:
        budget_violations = _gate(options.fail_over)
    except ValueError as error:
        print(f"tb-bottleneck: --fail-over: {error}", file=sys.stderr)
        return 2
    analysis = analysed(options)
    reports, problems = analysis.reports, analysis.problems
    _add_prices(analysis, options.price_per_hour)
    if not options.fail_over:  # a budget reports unreadable recordings itself
        problems += unreadable(reports)
    problems += budget_violations(reports)
    if options.html:
        problems += _html_problems(analysis, options.html)
    print_problems(problems)
    _show(analysis, options)
    return min(len(problems), 1)


def _html_problems(analysis: "Analysis", file: str) -> list[str]:
    """Writes the page to `file`. Returns one sentence per problem; empty if there was none."""
    from pathlib import Path

    from tb_bottleneck.base.persistence import atomic_file
    from tb_bottleneck.report.rendering.html import page

    try:
        with atomic_file(Path(file), mode=0o666) as target:
            target.write(page(analysis.reports).encode("utf-8"))
    except OSError as error:
        return [f"{file}: cannot be written: {error.strerror}"]
    return []


@dataclass(frozen=True)
class Analysis:
    """The reports of all recordings, the jobs whose ranks the reports are about, and a sentence per problem."""

    paths: list[str]  # of the reports
    reports: "list[Report]"
    jobs: "list[Job]"
    problems: list[str]

    def rows(self, sort: str | None, states: "Mapping[int, str] | None" = None) -> "list[Row]":
        """Returns one row per training, sorted by `sort`. `states` maps positions in `reports` to review states."""
        from tb_bottleneck.report.jobs import jobs_in
        from tb_bottleneck.report.rank_rows import named_rank
        from tb_bottleneck.report.rendering.table_rows import rows_of
        from tb_bottleneck.report.trainings import trainings_of

        jobs = dict(zip(map(tuple, jobs_in(self.reports)), self.jobs, strict=True)) if self.jobs else {}
        located = [(os.path.dirname(path), report) for path, report in zip(self.paths, self.reports, strict=True)]
        judged = {}
        for ranks, job in jobs.items():
            named = named_rank(job)
            judged[ranks] = next((position for position in ranks if self.reports[position].rank == named), ranks[0])
        return rows_of(self.reports, sort, trainings=trainings_of(located, judged), jobs=jobs, states=states)


def _add_prices(analysis: Analysis, price: float | None) -> None:
    if price is not None:
        from tb_bottleneck.report.efficiency.figures import add_price
        from tb_bottleneck.report.efficiency.of_job import add_job_price

        for report in analysis.reports:
            if report.HasField("efficiency"):
                add_price(report.efficiency, price)
        for job in analysis.jobs:
            if job.HasField("efficiency"):
                add_job_price(job.efficiency, price, job.world_size)


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
    tasks = [
        Task(path, run, not options.no_cache, several, getattr(options, "write", False)) for path, run in recordings
    ]
    places = {name: getattr(options, name) for name in ("processes", "scheduler", "scheduler_file", "workers")}
    results = analyse_all(tasks, progress_bar(), **places)
    reports = [Report.FromString(result.report) for result in results]
    problems = [result.problem for result in results if result.problem]
    paths = [path for path, _ in recordings]
    if not several:
        return Analysis(paths, reports, [], problems)
    from tb_bottleneck.jobs.report.health import JobWriter
    from tb_bottleneck.jobs.report.job_report import judged_together

    writer = JobWriter(reports, paths) if getattr(options, "write", False) else None
    directories = [os.path.dirname(path) for path in paths]
    joined, jobs = judged_together(
        directories, reports, [result.summary for result in results], writer.write if writer is not None else None
    )
    return Analysis(paths, joined, jobs, problems + (writer.problems if writer is not None else []))


def unreadable(reports: "list[Report]") -> list[str]:
    """Returns one sentence for each recording that could not be read."""
    return [f"{_name(report)} is unreadable" for report in reports if report.health.status == "unreadable"]


def print_problems(problems: list[str]) -> None:
    """Prints each problem on a line of standard error."""
    if problems:
        from tb_bottleneck.base.text import one_line

        for problem in problems:
            print(f"tb-bottleneck: {one_line(problem)}", file=sys.stderr)


def _gate(texts: list[str]) -> "Callable[[list[Report]], list[str]]":
    """Returns the function that checks these budgets and returns one sentence per violation. Raises ValueError."""
    if not texts:
        return lambda reports: []
    from tb_bottleneck.comparison.ci_gates import budget_of, budget_violations

    budgets = [budget_of(text) for text in texts]
    return lambda reports: budget_violations(reports, budgets)


def _name(report: "Report") -> str:
    return report.source if report.run in ("", ".") else f"{report.run}/{report.source}"


def _show(analysis: Analysis, options: argparse.Namespace) -> None:
    if options.json:
        from tb_bottleneck.report.rendering.json_form import as_json
        from tb_bottleneck.schema.bottleneck_pb2 import Reports

        print(as_json(Reports(reports=analysis.reports, jobs=analysis.jobs)))
        return
    if options.brief:
        from tb_bottleneck.report.rendering.brief import brief

        print("\n".join(brief(row.job or row.report) for row in analysis.rows(None)), end="")
        return
    from tb_bottleneck.report.rendering.text import render
    from tb_bottleneck.report.source_lines import add_source, source_folder

    layout, folder = stdout_layout(), source_folder()
    for report in analysis.reports:
        add_source(report, folder)
    if len(analysis.reports) == 1:
        print(render(analysis.reports[0], layout), end="")
        return
    print("\n\n".join(_texts(analysis, layout)), end="")


def _texts(analysis: Analysis, layout: "Layout") -> "Iterator[str]":
    """Yields the table of the trainings, then the report of each in the order of their files."""
    from tb_bottleneck.report.rendering.job_text import render_training
    from tb_bottleneck.report.rendering.table import table_text
    from tb_bottleneck.report.rendering.table_rows import sorted_rows

    rows = analysis.rows(None)
    yield table_text(sorted_rows(rows), layout)
    if len(rows) > MANY:
        yield layout.text(
            [
                "The reports follow in order of their files. To see one: tb-bottleneck diagnose FILE. "
                "To see only the table: tb-bottleneck list PATH."
            ]
        )
    for row in rows:
        yield render_training(row, layout)


def recordings_at(path: str) -> list[tuple[str, str]]:
    """Returns the pair (file, run) for every recording at `path`. Raises NotFound if `path` does not exist."""
    from tb_bottleneck.sources.paths import status_of

    if status_of(path).kind == "file":
        return [(path, ".")]
    from tb_bottleneck.sources.logdir import scan

    listing = scan(path)
    print_problems(list(listing.problems))
    return [(recording.path, recording.run) for recording in listing.recordings]
