"""`tb-bottleneck compare`: two runs side by side, or several in a row."""

import argparse
import sys
from typing import TYPE_CHECKING

from tb_bottleneck.commands.progress_bar import progress_bar
from tb_bottleneck.commands.run_argument import open_run
from tb_bottleneck.commands.subparser import add_subparser

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from tb_bottleneck.commands import Subparsers

EXAMPLES = """\
examples:
  tb-bottleneck compare runs/v100 runs/h100           where the time went, what the device promised, what is missing
  tb-bottleneck compare before.pt.trace.json.gz after.pt.trace.json.gz --json
  tb-bottleneck compare runs/w0 runs/w2 runs/w4 runs/w8   a sweep: what varies, its curve, its knee
  tb-bottleneck compare main/ branch/ --fail-slower 5%    a gate: exit status 1 where the branch is slower
  tb-bottleneck compare base.reports.json runs/now        against a report that `diagnose --json` printed

A run is a trace file, a directory with the recordings of one run (of several ranks, if there are), or a report: a file
NAME.reports.json with what `diagnose --json` printed, or NAME.bottlenecks.json; of reports less can be told. With three
runs or more, they are read as a sweep where one thing varies, else in the order given: since when are they slower, and
where?
"""


def add(commands: "Subparsers") -> None:
    """Declares the command."""
    compare = add_subparser(
        commands,
        "compare",
        "two runs side by side, or several in a row: where the time went, and why",
        "Tells why one run is faster or slower than another, regime by regime. Where the devices differ, "
        "also what B's device promises for the work that A does, and by what that promise was not kept.",
        EXAMPLES,
    )
    compare.add_argument(
        "runs", nargs="+", metavar="RUN", help="a trace file, a directory with one run, or a report; see below"
    )
    compare.add_argument("--json", action="store_true", help="print one JSON object")
    compare.add_argument(
        "--fail-slower",
        metavar="SHARE",
        help="exit status 1 and a sentence where the last run is slower than the first by more than this (0.05 or 5%%) "
        "and beyond the noise of their steps, or where they cannot be compared",
    )
    compare.set_defaults(run=_compare)


def _compare(options: argparse.Namespace) -> int:
    from tb_bottleneck.comparison import ci_gates
    from tb_bottleneck.comparison.compare import compare_runs
    from tb_bottleneck.comparison.series.run_series import series_of
    from tb_bottleneck.comparison.texts.terminal import render_comparison, render_series

    if len(options.runs) < 2:
        print("tb-bottleneck: compare needs two runs or more", file=sys.stderr)
        return 2
    try:
        most = ci_gates.share_of(options.fail_slower) if options.fail_slower else None
    except ValueError as error:
        print(f"tb-bottleneck: --fail-slower: {error}", file=sys.stderr)
        return 2
    with progress_bar() as begin:
        sides = [open_run(run, begin(run)) for run in options.runs]
    told = compare_runs(sides[0], sides[-1])
    if len(sides) == 2:
        _show(told, render_comparison(told), options.json)
    else:
        series = series_of(sides)
        _show(series, render_series(series), options.json)
    said = ci_gates.slowdown_violation(told, most) if most is not None else None
    if said is not None:
        print(f"tb-bottleneck: {said}", file=sys.stderr)
    return int(said is not None)


def _show(message: "Message", text: str, as_object: bool) -> None:
    from tb_bottleneck.report.rendering.json_form import as_json

    print(as_json(message) if as_object else text, end="\n" if as_object else "")
