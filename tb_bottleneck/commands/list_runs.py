"""`tb-bottleneck list`: one row for each training, by default the most severe first."""

import argparse
import json
import os
from typing import TYPE_CHECKING

from tb_bottleneck.commands import recordings
from tb_bottleneck.commands.arguments import add_subparser
from tb_bottleneck.commands.terminal import stdout_layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tb_bottleneck.commands import Subparsers

# The keys of table_columns.COLUMNS, which is not imported for `--help`.
COLUMN_NAMES = (
    "name", "evidence", "severity", "verdict", "share", "lost", "gain", "step", "rate", "batch", "memory", "device",
    "revision", "health", "state", "action",
)  # fmt: skip

EXAMPLES = """\
examples:
  tb-bottleneck list runs/                    the most severe first, of these the most recoverable time
  tb-bottleneck list runs/ --sort gain        the most recoverable time first
  tb-bottleneck list runs/ --columns name,verdict,gain,rate,memory
  tb-bottleneck list runs/ --json             all columns, with full names, times in ns, shares from 0 to 1

exit status: 0; 1 if a recording is unreadable; 2 for wrong usage or if no recording is found
"""


def add(commands: "Subparsers") -> None:
    """Adds the command with its arguments to `commands`, the subparsers of the command line."""
    parser = add_subparser(
        commands,
        "list",
        "list trainings with verdict, what there is to gain, and what to change first",
        "Analyses recordings as `diagnose` does, and prints one row for each training, with one verdict from its "
        "traces, its telemetry and its ranks: severity, verdict and its share of the time, predicted gain of the whole "
        "plan, mean step time, samples per second, and what to change first.",
        EXAMPLES,
    )
    recordings.add_recordings(parser)
    # Names of table_rows.SORTS, which is not imported for `--help`.
    parser.add_argument(
        "--sort",
        choices=("gain", "step", "lost", "rate", "memory", "severity", "name", "time"),
        default="severity",
        help="severity: most severe first, of these the one with the largest gain; gain: most recoverable first; step: "
        "longest first; lost: most time in which the device does not compute first; rate: fewest samples per second "
        "first; memory: highest peak first; time: newest first (default: severity)",
    )
    parser.add_argument(
        "--columns",
        type=_columns,
        default=(),
        metavar="NAME,...",
        help=f"columns to print: {', '.join(COLUMN_NAMES)} (default: those that fit)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object with all columns")
    parser.set_defaults(run=_list, write=False, for_list=True)


def _columns(text: str) -> tuple[str, ...]:
    """Returns the names of columns in `text`, a list separated by commas. Raises ArgumentTypeError for an unknown
    name."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    unknown = [name for name in names if name not in COLUMN_NAMES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no column is named {unknown[0]!r}; there are {', '.join(COLUMN_NAMES)}")
    return names


def _list(options: argparse.Namespace) -> int:
    analysis = recordings.analysed(options)
    from tb_bottleneck.text import table

    problems = analysis.problems + recordings.unreadable(analysis.reports)
    recordings.print_problems(problems)
    rows = analysis.rows(options.sort, _states(analysis, options.paths))
    if options.json:
        print(json.dumps(table.table_values(rows)))
    else:
        print(table.table_text(rows, stdout_layout(), options.columns), end="")
    return min(len(problems), 1)


def _states(analysis: recordings.Analysis, roots: "Sequence[str]") -> dict[int, str]:
    """Returns a dict: position of a report in `analysis` -> review states of its findings as text, such as "open,
    accepted". The notes of reviewers are read from the paths in `roots` that are directories."""
    from tb_bottleneck.review.notes import reviews_of, state_of
    from tb_bottleneck.review.store import read_notes
    from tb_bottleneck.schema.review_pb2 import Review
    from tb_bottleneck.sources.logdir import RecordingFile

    files = [
        RecordingFile(os.path.abspath(path), report.run, report.source, 0, 0)
        for path, report in zip(analysis.paths, analysis.reports, strict=True)
    ]
    reviews: dict[RecordingFile, Review] = {}
    for root in filter(os.path.isdir, roots):
        inside = [file for file in files if file.path.startswith(os.path.join(os.path.abspath(root), ""))]
        reviews |= reviews_of(read_notes(root).notes, inside)
    states = {}
    for position, (file, report) in enumerate(zip(files, analysis.reports, strict=True)):
        review = reviews.get(file, Review())
        known = {state_of(review, finding.cause).state for finding in report.findings}
        states[position] = ", ".join(word for word in ("open", "accepted", "fixed") if word in known)
    return states
