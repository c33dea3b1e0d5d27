"""`tb-bottleneck tables`: operators, kernels, waits, copies, communications and the critical path of a recording."""

import argparse
from typing import TYPE_CHECKING

from tb_bottleneck.commands.arguments import add_subparser, recordings_of
from tb_bottleneck.commands.terminal import progress_bar, stdout_layout

if TYPE_CHECKING:
    from tb_bottleneck.commands import Subparsers
    from tb_bottleneck.drilldown.inspected_trace import InspectedTrace

EXAMPLES = """\
examples:
  tb-bottleneck tables runs/mine                                  operators, longest first
  tb-bottleneck tables trace.json.gz --of communications          with algorithm and bus bandwidth
  tb-bottleneck tables trace.json.gz --operator aten::mm          by shapes, callers, kernels, lines and modules
  tb-bottleneck tables trace.json.gz --json                       all tables as one JSON object
"""

_TABLES = ("operators", "kernels", "waits", "copies", "communications", "critical-path")
_DEFAULT_ROWS = 25


def add(commands: "Subparsers") -> None:
    """Adds the command with its arguments to `commands`, the subparsers of the command line."""
    parser = add_subparser(
        commands,
        "tables",
        "list operators, kernels, waits, copies, communications or the critical path",
        "Lists what ran in the judged window of a recording. Times and calls are totals of the window.",
        EXAMPLES,
    )
    parser.add_argument("path", metavar="RUN", help="a trace file, or a directory with one run")
    parser.add_argument("--of", choices=_TABLES, default="operators", help="the table (operators)")
    parser.add_argument("--rows", type=int, default=_DEFAULT_ROWS, metavar="N", help="number of rows (25)")
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--operator", metavar="NAME", help="all calls of this operator, grouped")
    one.add_argument("--kernel", metavar="NAME", help="all calls of this kernel, grouped")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_tables)


def _tables(options: argparse.Namespace) -> int:
    from tb_bottleneck.drilldown.inspected_trace import load_inspected
    from tb_bottleneck.drilldown.operations.terminal import table_text
    from tb_bottleneck.drilldown.tables import tables_of
    from tb_bottleneck.report.rendering.json_form import as_json

    with progress_bar() as begin:
        inspected = load_inspected(recordings_of(options.path).traces[-1], begin(options.path))
    if options.operator or options.kernel:
        return _details(inspected, options)
    tables = tables_of(inspected)
    print(as_json(tables) if options.json else table_text(tables, options.of, options.rows, stdout_layout()), end="")
    return 0


def _details(inspected: "InspectedTrace", options: argparse.Namespace) -> int:
    from tb_bottleneck.drilldown.operations.details import details_of
    from tb_bottleneck.drilldown.operations.terminal import details_text
    from tb_bottleneck.report.rendering.json_form import as_json

    details = details_of(inspected, options.operator, options.kernel)
    print(as_json(details) if options.json else details_text(details, options.rows, stdout_layout()), end="")
    return 0
