"""`tb-bottleneck diagnose`: judges recordings and prints one report for each."""

import argparse
import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tb_bottleneck.errors import NotFound

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from tb_bottleneck.commands import Subparsers
    from tb_bottleneck.report.identity import Identity
    from tb_bottleneck.schema.bottleneck_pb2 import Report

EXAMPLES = """\
examples:
  tb-bottleneck diagnose runs/resnet/host_42.1764.pt.trace.json.gz
  tb-bottleneck diagnose runs/                       every recording under a logdir
  tb-bottleneck diagnose runs/ --json > reports.json one object: {"reports": [...]}

record a trace for it with:
  with torch.profiler.profile(
      schedule=torch.profiler.schedule(skip_first=10, wait=1, warmup=2, active=6),
      on_trace_ready=torch.profiler.tensorboard_trace_handler("runs/mine"),
  ) as prof:
      for batch in loader:
          train_step(batch)
          prof.step()
"""


def add(commands: "Subparsers") -> None:
    """Declares the command."""
    diagnose = commands.add_parser(
        "diagnose",
        help="judge recordings: files, run directories or whole logdirs",
        description="Judges torch.profiler recordings and prints one report for each.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    diagnose.add_argument(
        "paths", nargs="+", metavar="PATH", help="a trace file, or a directory that is searched for traces"
    )
    diagnose.add_argument("--json", action="store_true", help='print one JSON object, {"reports": [...]}')
    diagnose.add_argument("--no-cache", action="store_true", help="read every trace anew, and keep no report of it")
    diagnose.add_argument(
        "--write", action="store_true", help="also put each report beside its trace, as NAME.bottlenecks.json"
    )
    diagnose.set_defaults(run=_diagnose)


def _diagnose(options: argparse.Namespace) -> int:
    from tb_bottleneck.report.jobs import jobs_of
    from tb_bottleneck.report.jsonform import as_json
    from tb_bottleneck.report.text import render, render_job
    from tb_bottleneck.schema.bottleneck_pb2 import Reports

    found = [one for path in options.paths for one in _recordings(path)]
    problems: list[str] = []
    reports = list(_reports(found, options, problems))
    for problem in problems:
        print(f"tb-bottleneck: {problem}", file=sys.stderr)
    if options.json:
        print(as_json(Reports(reports=reports, jobs=jobs_of(reports))))
        return min(len(problems), 1)
    if not reports:
        where = ", ".join(options.paths)
        print(f"No trace was found under {where}; looked for *.pt.trace.json and *.pt.trace.json.gz, at any depth.")
    print("\n\n".join([render(report) for report in reports] + [render_job(job) for job in jobs_of(reports)]), end="")
    return min(len(problems), 1)


def _recordings(path: str) -> list[tuple[str, str]]:
    """(file, run) of every recording at a path. Raises NotFound."""
    from tb_bottleneck.sources.logdir import scan

    if not Path(path).exists():
        raise NotFound(f"no such file or directory: {path}")
    if Path(path).is_file():
        return [(path, ".")]
    listing = scan(path)
    for problem in listing.problems:
        print(f"tb-bottleneck: {problem}", file=sys.stderr)
    return [(recording.path, recording.run) for recording in listing.recordings]


def _reports(found: list[tuple[str, str]], options: argparse.Namespace, problems: list[str]) -> "Iterator[Report]":
    """One report per recording, with a progress bar where a person is watching; adds what could not be written."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from tb_bottleneck.diagnosis import diagnose
    from tb_bottleneck.report.identity import identity_of
    from tb_bottleneck.report.remembered import remembered
    from tb_bottleneck.report.stored import Store

    judge = diagnose if options.no_cache else partial(remembered, diagnose, Store.from_environment(os.environ))
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        for path, run in found:
            task = bar.add_task(Path(path).name, total=None)
            identity = identity_of(path)
            report = judge(path, run=run, progress=partial(_show, bar, task))
            if options.write and identity is not None:
                problems += _write_beside(path, identity, report)
            yield report
            bar.remove_task(task)


def _write_beside(path: str, identity: "Identity", report: "Report") -> list[str]:
    """Puts the report beside its trace, unless the trace cannot be read or changed meanwhile; returns the problems."""
    from tb_bottleneck.report import sidecar
    from tb_bottleneck.report.identity import identity_of
    from tb_bottleneck.report.remembered import is_worth_keeping

    if not is_worth_keeping(report) or identity_of(path) != identity:
        return []
    try:
        sidecar.write(path, identity, report)
    except OSError as error:
        return [f"{sidecar.beside(path)} could not be written: {error.strerror}"]
    return []


def _show(bar: "Progress", task: "TaskID", done: int, total: int) -> None:
    bar.update(task, completed=done, total=total)
