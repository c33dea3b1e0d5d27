"""`tb-bottleneck compare`: compares two runs, or a series of runs."""

import argparse
import sys
from typing import TYPE_CHECKING

from tb_bottleneck.commands.arguments import add_subparser, open_run
from tb_bottleneck.commands.recordings import print_problems
from tb_bottleneck.commands.terminal import progress_bar, stdout_layout

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from tb_bottleneck.commands import Subparsers

EXAMPLES = """\
examples:
  tb-bottleneck compare runs/v100 runs/h100               the difference per regime, and the expected speed-up
  tb-bottleneck compare before.pt.trace.json.gz after.pt.trace.json.gz --json
  tb-bottleneck compare runs/w0 runs/w2 runs/w4 runs/w8   a sweep: the varying setting and its curve
  tb-bottleneck compare main/ branch/ --fail-slower 5%    CI gate: exit status 1 if the branch is slower by over 5 %
  tb-bottleneck compare base.reports.json runs/now        compares with a report that `diagnose --json` printed

RUN is a trace file, a directory with the recordings of one run (of all its ranks; telemetry alone is enough), or a
report: a file NAME.reports.json with the output of `diagnose --json`, or NAME.bottlenecks.json. A report allows fewer
comparisons than a trace. Three or more runs are a sweep if one setting varies. Otherwise they are a history in the
order given, and the result is the first run that is slower and the regime that makes it slower.
"""


def add(commands: "Subparsers") -> None:
    """Adds the command with its arguments to `commands`, the subparsers of the command line."""
    compare = add_subparser(
        commands,
        "compare",
        "compare two runs or a series of runs",
        "Explains by kind of time why one run is faster or slower than another. If the devices differ, it also shows "
        "the speed-up that the second device should give for this work, and what explains the shortfall.",
        EXAMPLES,
    )
    compare.add_argument(
        "runs", nargs="+", metavar="RUN", help="a trace file, a directory with one run, or a report; see below"
    )
    compare.add_argument("--json", action="store_true", help="print one JSON object")
    compare.add_argument(
        "--fail-slower",
        "--fail-over",
        metavar="SHARE",
        help="exit with status 1 if the last run is slower than the first by more than this share (0.05 or 5%%) and by "
        "more than the noise of the steps, or if the two cannot be compared",
    )
    compare.set_defaults(run=_compare)


def _compare(options: argparse.Namespace) -> int:
    from tb_bottleneck.comparison import ci_gates
    from tb_bottleneck.comparison.compare import compare_runs
    from tb_bottleneck.comparison.runs.compared_run import UnjudgedRun
    from tb_bottleneck.comparison.series.run_series import series_of
    from tb_bottleneck.text.comparison import render_comparison, render_series

    if len(options.runs) < 2:
        print("tb-bottleneck: compare needs at least two runs", file=sys.stderr)
        return 2
    try:
        max_slowdown = ci_gates.share_of(options.fail_slower) if options.fail_slower else None
    except ValueError as error:
        print(f"tb-bottleneck: --fail-slower: {error}", file=sys.stderr)
        return 2
    with progress_bar() as begin:
        runs = [open_run(run, begin(run), needs_trace=False) for run in options.runs]
    comparison = compare_runs(runs[0], runs[-1])
    if len(runs) == 2:
        _show(comparison, render_comparison(comparison, stdout_layout()), options.json)
    else:
        series = series_of(runs)
        _show(series, render_series(series, stdout_layout()), options.json)
    violation = ci_gates.slowdown_violation(comparison, max_slowdown) if max_slowdown is not None else None
    if violation is not None:
        print_problems([violation])
    return int(violation is not None or any(isinstance(run, UnjudgedRun) for run in runs))


def _show(message: "Message", text: str, as_object: bool) -> None:
    from tb_bottleneck.report.json_form import as_json

    print(as_json(message) if as_object else text, end="\n" if as_object else "")
