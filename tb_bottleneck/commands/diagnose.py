"""`tb-bottleneck diagnose`: analyses recordings and prints one report for each."""

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.commands.arguments import add_subparser
from tb_bottleneck.commands.recordings import Analysis, add_recordings, analysed, hangs_at, print_problems, unreadable
from tb_bottleneck.commands.terminal import stdout_layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tb_bottleneck.commands import Subparsers
    from tb_bottleneck.live.post_mortem import PostMortem
    from tb_bottleneck.schema.bottleneck_pb2 import Report
    from tb_bottleneck.text.terminal import Layout

EXAMPLES = """\
examples:
  tb-bottleneck diagnose runs/resnet/host_42.1764.pt.trace.json.gz
  tb-bottleneck diagnose runs/                       all recordings under a logdir
  tb-bottleneck diagnose runs/ --json > reports.json one object: {"reports": [...], "jobs": [...]}
  tb-bottleneck diagnose runs/mine --full            everything that was found: about 100 lines
  tb-bottleneck diagnose runs/ --brief               at most 1,500 characters per training, for agents and messages
  tb-bottleneck diagnose runs/mine --html report.html  a page to send
  tb-bottleneck diagnose dumps/                      why a job hung, from Flight Recorder's dumps of all ranks
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

FEW_LINES = 12
"""With at most so many lines, no empty line is before the last one, which says how to see everything."""
MANY = 20
"""If more trainings than this are printed, a hint says how to see a single report."""


def add(commands: "Subparsers") -> None:
    """Adds the command with its arguments to `commands`, the subparsers of the command line."""
    diagnose = add_subparser(
        commands,
        "diagnose",
        "analyse recordings: files, run directories or whole logdirs",
        "Analyses traces of torch.profiler and event files of the monitor, and prints a screen for each "
        "training: what to change first, where the time of a step goes, the line, and the code of the fix.",
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
    form.add_argument("--full", action="store_true", help="print everything that was found")
    form.add_argument(
        "--lines",
        type=int,
        default=32,
        metavar="N",
        help="print at most N lines for each training (default: %(default)s)",
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
    # The end of a training: the logdir, whose ledger keeps what this run gained.
    diagnose.add_argument("--ledger", default="", help=argparse.SUPPRESS)
    diagnose.set_defaults(run=_diagnose)


def _diagnose(options: argparse.Namespace) -> int:
    try:
        budget_violations = _gate(options.fail_over)
    except ValueError as error:
        print(f"tb-bottleneck: --fail-over: {error}", file=sys.stderr)
        return 2
    hangs = hangs_at(options.paths)
    try:
        analysis = analysed(options)
    except NotFound:
        if not hangs:
            raise
        analysis = Analysis([], [], [], [])
    reports, problems = analysis.reports, analysis.problems
    if not options.fail_over:  # a budget reports unreadable recordings itself
        problems += unreadable(reports)
    problems += budget_violations(reports)
    if options.html:
        problems += _html_problems(analysis, options.html)
    print_problems(problems)
    if options.json:
        _print_json(analysis, hangs)
    else:
        print("\n\n".join(stdout_layout().text(list(hang.lines())) for hang in hangs), end="\n" * bool(hangs))
        _show(analysis, options)
    if options.ledger and analysis.reports and analysis.reports[0].HasField("verdict"):
        import contextlib
        from pathlib import Path

        from tb_bottleneck.commands.last_run import gain_since_last_run

        sys.stdout.flush()  # what follows may take longer than the caller waits
        with contextlib.suppress(OSError, ValueError):  # the logdir may be full, or not ours
            print(gain_since_last_run(options.ledger, Path(options.paths[0]), analysis.reports[0]), end="")
    return min(len(problems), 1)


def _html_problems(analysis: "Analysis", file: str) -> list[str]:
    """Writes the reports as an HTML page to `file`. Returns one sentence per problem; empty if there was none."""
    from pathlib import Path

    from tb_bottleneck.base.persistence import atomic_file
    from tb_bottleneck.text.html import page

    try:
        with atomic_file(Path(file), mode=0o666) as target:
            target.write(page(analysis.reports).encode("utf-8"))
    except OSError as error:
        return [f"{file}: cannot be written: {error.strerror}"]
    return []


def _gate(texts: list[str]) -> "Callable[[list[Report]], list[str]]":
    """Returns a function that checks reports against the budgets in `texts` and returns one sentence per violation.
    Raises ValueError if a text is not a budget."""
    if not texts:
        return lambda reports: []
    from tb_bottleneck.comparison.ci_gates import budget_of, budget_violations

    budgets = [budget_of(text) for text in texts]
    return lambda reports: budget_violations(reports, budgets)


def _print_json(analysis: Analysis, hangs: "list[PostMortem]") -> None:
    from tb_bottleneck.report.json_form import as_json
    from tb_bottleneck.schema.bottleneck_pb2 import Reports

    text = as_json(Reports(reports=analysis.reports, jobs=analysis.jobs))
    if hangs:
        import json

        text = json.dumps({**json.loads(text), "hangs": [hang.as_json() for hang in hangs]}, indent=2)
    print(text)


def _show(analysis: Analysis, options: argparse.Namespace) -> None:
    if not analysis.reports:
        return
    if options.brief:
        from tb_bottleneck.text.brief import brief

        print("\n".join(brief(row.job or row.report) for row in analysis.rows(None)), end="")
        return
    from tb_bottleneck.report.source_lines import add_source, source_folder
    from tb_bottleneck.text.report import render
    from tb_bottleneck.text.summary import summary
    from tb_bottleneck.trial.source_patch import add_patches

    layout, folder = stdout_layout(), source_folder()
    footer = ["", f"Everything that was found: tb-bottleneck diagnose --full {shlex.join(options.paths)}"]
    footer = footer[1:] if options.lines <= FEW_LINES else footer
    lines = max(options.lines - len(footer), 1)
    for report in analysis.reports:
        add_source(report, folder)
        add_patches(report, folder)
    if len(analysis.reports) == 1:
        text = render(analysis.reports[0], layout) if options.full else summary(analysis.reports[0], layout, lines)
        print(text, end="")
    else:
        print("\n\n".join(_texts(analysis, layout, 0 if options.full else lines)), end="")
    if not options.full:
        print("\n".join(footer))


def _texts(analysis: Analysis, layout: "Layout", lines: int) -> "Iterator[str]":
    """Yields the table of all trainings, then each training in at most `lines` lines (0: all), in the order of the
    files."""
    from tb_bottleneck.text.job import render_training
    from tb_bottleneck.text.summary import summary
    from tb_bottleneck.text.table import table_text
    from tb_bottleneck.text.table_rows import sorted_rows

    rows = analysis.rows(None)
    if len(rows) > 1:
        yield table_text(sorted_rows(rows), layout)
    if len(rows) > MANY:
        yield layout.text(
            [
                "The reports follow in order of their files. To see one: tb-bottleneck diagnose FILE. "
                "To see only the table: tb-bottleneck list PATH."
            ]
        )
    for row in rows:
        yield summary(row.job or row.report, layout, lines) if lines else render_training(row, layout)
