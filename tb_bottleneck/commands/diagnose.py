"""`tb-bottleneck diagnose`: judges recordings and prints one report for each."""

import argparse
import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tb_bottleneck.commands import Subparsers
    from tb_bottleneck.report.identity import Identity
    from tb_bottleneck.schema.bottleneck_pb2 import Report

EXAMPLES = """\
examples:
  tb-bottleneck diagnose runs/resnet/host_42.1764.pt.trace.json.gz
  tb-bottleneck diagnose runs/                       every recording under a logdir
  tb-bottleneck diagnose runs/ --json > reports.json one object: {"reports": [...]}
  tb-bottleneck diagnose runs/ --fail-over input=10% a gate: exit status 1 where more of the time is lost so

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
    from tb_bottleneck.comparison.budgets import budget_of, overspent
    from tb_bottleneck.report.jobs import jobs_of
    from tb_bottleneck.report.joined import join
    from tb_bottleneck.report.jsonform import as_json
    from tb_bottleneck.report.text import render, render_job
    from tb_bottleneck.schema.bottleneck_pb2 import Reports

    try:
        budgets = [budget_of(text) for text in options.fail_over]
    except ValueError as error:
        print(f"tb-bottleneck: --fail-over: {error}", file=sys.stderr)
        return 2
    found = [one for path in options.paths for one in _recordings(path)]
    problems: list[str] = []
    reports = list(_reports(found, options, problems))
    join(zip((os.path.dirname(path) for path, _ in found), reports, strict=True))
    problems += overspent(reports, budgets)
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
    from tb_bottleneck.sources.places import status_of

    if status_of(path).kind == "file":
        return [(path, ".")]
    listing = scan(path)
    for problem in listing.problems:
        print(f"tb-bottleneck: {problem}", file=sys.stderr)
    return [(recording.path, recording.run) for recording in listing.recordings]


def _reports(found: list[tuple[str, str]], options: argparse.Namespace, problems: list[str]) -> "Iterator[Report]":
    """One report per recording, with a progress bar where a person is watching; adds what could not be written."""
    from tb_bottleneck.commands.bar import progress_bar
    from tb_bottleneck.diagnosis import diagnose
    from tb_bottleneck.live import diagnose_telemetry
    from tb_bottleneck.report.identity import identity_of
    from tb_bottleneck.report.remembered import remembered
    from tb_bottleneck.report.stored import Store
    from tb_bottleneck.sources.series import is_event_file

    judge = diagnose if options.no_cache else partial(remembered, diagnose, Store.from_environment(os.environ))
    with progress_bar() as begin:
        for path, run in found:
            tell = begin(Path(path).name)
            identity = identity_of(path)
            heard = is_event_file(path)
            report = (diagnose_telemetry if heard else judge)(path, run=run, progress=tell)
            if options.write and identity is not None and not heard:
                problems += _write_beside(path, identity, report)
            yield report


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
