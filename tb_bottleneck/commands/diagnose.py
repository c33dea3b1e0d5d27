"""`tb-bottleneck diagnose`: judges recordings and prints one report for each."""

import argparse
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tb_bottleneck.commands.progress_bar import progress_bar
from tb_bottleneck.commands.subparser import add_subparser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tb_bottleneck.commands import Subparsers
    from tb_bottleneck.schema.bottleneck_pb2 import Job, Report

EXAMPLES = """\
examples:
  tb-bottleneck diagnose runs/resnet/host_42.1764.pt.trace.json.gz
  tb-bottleneck diagnose runs/                       every recording under a logdir
  tb-bottleneck diagnose runs/ --json > reports.json one object: {"reports": [...]}
  tb-bottleneck diagnose runs/ --fail-over input=10% a gate: exit status 1 where more of the time is lost so

record a trace for it with:
  with torch.profiler.profile(
      schedule=torch.profiler.schedule(skip_first=10, wait=1, warmup=2, active=6, repeat=1),
      on_trace_ready=torch.profiler.tensorboard_trace_handler("runs/mine"),
  ) as prof:
      for batch in loader:
          train_step(batch)
          prof.step()
"""


def add(commands: "Subparsers") -> None:
    """Declares the command."""
    diagnose = add_subparser(
        commands,
        "diagnose",
        "judge recordings: files, run directories or whole logdirs",
        "Judges recordings, traces of torch.profiler and what the monitor wrote, and prints one report for "
        "each: who owns the time of a step, why, and what to change first.",
        EXAMPLES,
    )
    diagnose.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="a trace, an event file of the monitor, or a directory that is searched for both, at any depth",
    )
    diagnose.add_argument("--json", action="store_true", help='print one JSON object, {"reports": [...]}')
    diagnose.add_argument("--no-cache", action="store_true", help="read every trace anew, and keep no report of it")
    diagnose.add_argument(
        "--write", action="store_true", help="also put each report beside its trace, as NAME.bottlenecks.json"
    )
    diagnose.add_argument(
        "--fail-over",
        action="append",
        default=[],
        metavar="REGIME=SHARE",
        help="a budget, as input=0.10 or sync=5%%: exit status 1 and a sentence where a regime owns a larger share of "
        "the time in any recording, or where a recording gives no verdict; may be given several times",
    )
    diagnose.set_defaults(run=_diagnose)


def _diagnose(options: argparse.Namespace) -> int:
    # numpy would start threads to multiply matrices with, which took 0.1 s of the processors; no matrix is multiplied.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        budget_violations = _gate(options.fail_over)
    except ValueError as error:
        print(f"tb-bottleneck: --fail-over: {error}", file=sys.stderr)
        return 2
    found = [one for path in options.paths for one in _recordings(path)]
    problems: list[str] = []
    reports = list(_reports(found, options, problems))
    reports, jobs = _joined(found, reports)
    problems += budget_violations(reports)
    for problem in problems:
        print(f"tb-bottleneck: {problem}", file=sys.stderr)
    _show(reports, jobs, options)
    return min(len(problems), 1)


def _gate(texts: list[str]) -> "Callable[[list[Report]], list[str]]":
    """What says where these budgets are not kept. Raises ValueError."""
    if not texts:
        return lambda reports: []
    from tb_bottleneck.comparison.ci_gates import budget_of, budget_violations

    budgets = [budget_of(text) for text in texts]
    return lambda reports: budget_violations(reports, budgets)


def _joined(found: list[tuple[str, str]], reports: "list[Report]") -> "tuple[list[Report], list[Job]]":
    """Returns the reports, joined if they are about one process, and the jobs that several of them are about."""
    if len(reports) < 2:
        return reports, []
    from tb_bottleneck.report.cross_check import join
    from tb_bottleneck.report.jobs import jobs_of

    joined = join(zip((os.path.dirname(path) for path, _ in found), reports, strict=True))
    return joined, jobs_of(joined)


def _show(reports: "list[Report]", jobs: "list[Job]", options: argparse.Namespace) -> None:
    if options.json:
        from tb_bottleneck.report.rendering.json_form import as_json
        from tb_bottleneck.schema.bottleneck_pb2 import Reports

        print(as_json(Reports(reports=reports, jobs=jobs)))
        return
    from tb_bottleneck.report.rendering.text import render, render_job

    if not reports:
        where = ", ".join(options.paths)
        sought = "*.pt.trace.json and *.pt.trace.json.gz, and for event files of the monitor, at any depth"
        print(f"No recording was found under {where}; looked for {sought}.")
    print("\n\n".join([render(report) for report in reports] + [render_job(job) for job in jobs]), end="")


def _recordings(path: str) -> list[tuple[str, str]]:
    """(file, run) of every recording at a path. Raises NotFound."""
    from tb_bottleneck.sources.filesystem import status_of

    if status_of(path).kind == "file":
        return [(path, ".")]
    from tb_bottleneck.sources.logdir import scan

    listing = scan(path)
    for problem in listing.problems:
        print(f"tb-bottleneck: {problem}", file=sys.stderr)
    return [(recording.path, recording.run) for recording in listing.recordings]


def _reports(found: list[tuple[str, str]], options: argparse.Namespace, problems: list[str]) -> "Iterator[Report]":
    """One report per recording, with a progress bar where a person is watching; adds what could not be written."""
    from tb_bottleneck.sources.event_files import is_event_file

    judge = _judge(options)
    with progress_bar() as begin:
        for path, run in found:
            tell = begin(Path(path).name)
            if is_event_file(path):
                from tb_bottleneck.diagnosis.telemetry import diagnose_telemetry

                yield diagnose_telemetry(path, run=run, progress=tell)
            elif options.write:
                yield _written(path, partial(judge, path, run=run, progress=tell), problems)
            else:
                yield judge(path, run=run, progress=tell)


def _judge(options: argparse.Namespace) -> "Callable[..., Report]":
    """What makes the report of a trace, or remembers it."""
    from tb_bottleneck.diagnosis.trace import diagnose

    if options.no_cache:
        return diagnose
    from tb_bottleneck.report.cache.cached_diagnosis import remembered
    from tb_bottleneck.report.cache.report_store import Store

    return partial(remembered, diagnose, Store.from_environment(os.environ))


def _written(path: str, judge: "Callable[[], Report]", problems: list[str]) -> "Report":
    """The report, which is put beside its trace too, unless that cannot be read or changed meanwhile."""
    from tb_bottleneck.report.cache import sidecar
    from tb_bottleneck.report.cache.cached_diagnosis import is_worth_keeping
    from tb_bottleneck.report.cache.file_identity import identity_of

    identity = identity_of(path)
    report = judge()
    if identity is not None and is_worth_keeping(report) and identity_of(path) == identity:
        try:
            sidecar.write(path, identity, report)
        except OSError as error:
            problems.append(f"{sidecar.beside(path)} could not be written: {error.strerror}")
    return report
