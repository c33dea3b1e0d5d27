"""`tb-bottleneck list`: one row for each recording, the one with the most recoverable time first."""

import argparse
from typing import TYPE_CHECKING

from tb_bottleneck.commands import diagnose
from tb_bottleneck.commands.subparser import add_subparser
from tb_bottleneck.commands.terminal import stdout_layout

if TYPE_CHECKING:
    from tb_bottleneck.commands import Subparsers

EXAMPLES = """\
examples:
  tb-bottleneck list runs/                    the recording with the most recoverable time first
  tb-bottleneck list runs/ --sort severity
  tb-bottleneck list runs/ --csv > runs.csv   with full names, times in nanoseconds, shares from 0 to 1
  tb-bottleneck list runs/ --markdown

exit status: 0; 1 if a recording is unreadable; 2 for wrong usage or if no recording is found
"""


def add(commands: "Subparsers") -> None:
    """Declares the command."""
    parser = add_subparser(
        commands,
        "list",
        "list recordings with verdict, gain left and what to change first",
        "Analyses recordings as `diagnose` does, and prints one row for each: severity, verdict and its share of the "
        "time, predicted gain of the whole plan, mean step time, device, state, and what to change first.",
        EXAMPLES,
    )
    diagnose.add_recordings(parser)
    # Names of table.SORTS, which is not imported for `--help`.
    parser.add_argument(
        "--sort",
        choices=("gain", "step", "severity", "name", "time"),
        default="gain",
        help="gain: most recoverable first; step: longest first; severity: most severe first; time: newest first "
        "(default: gain)",
    )
    formats = parser.add_mutually_exclusive_group()
    formats.add_argument("--csv", action="store_true", help="print comma-separated values")
    formats.add_argument("--markdown", action="store_true", help="print a Markdown table")
    parser.set_defaults(run=_list, write=False)


def _list(options: argparse.Namespace) -> int:
    reports, _, problems = diagnose.analysed(options)
    from tb_bottleneck.report.rendering import table

    problems += diagnose.unreadable(reports)
    diagnose.print_problems(problems)
    rows = table.rows_of(reports, options.sort)
    if options.csv or options.markdown:
        print(table.table_csv(rows) if options.csv else table.table_markdown(rows), end="")
    else:
        print(table.table_text(rows, stdout_layout()), end="")
    return min(len(problems), 1)
