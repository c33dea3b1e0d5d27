"""`tb-bottleneck export`: writes the tables of recordings as files."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tb_bottleneck.base.errors import NotFound, Unusable
from tb_bottleneck.commands import recordings
from tb_bottleneck.commands.arguments import add_subparser
from tb_bottleneck.commands.terminal import progress_bar

if TYPE_CHECKING:
    from tb_bottleneck.commands import Subparsers

EXAMPLES = """\
examples:
  tb-bottleneck export runs/resnet                            writes to the directory tb_bottleneck_export
  tb-bottleneck export rank*.json.gz --output tables
  duckdb -c "SELECT name, sum(duration_ns) FROM 'tables/kernels/*.parquet' GROUP BY name ORDER BY 2 DESC LIMIT 10"

exit status: 0; 1 if a recording is unreadable or a file cannot be written; 2 for wrong usage or if no trace is found
"""


def add(commands: "Subparsers") -> None:
    """Adds the command with its arguments to `commands`, the subparsers of the command line."""
    parser = add_subparser(
        commands,
        "export",
        "write events, kernels, collectives and ranks as Parquet files",
        "Writes the events, kernels, collectives and a row per rank of traces as Parquet files, for DuckDB, pandas, "
        "Polars and others. It needs pyarrow: pip install 'tb_bottleneck[parquet]'. The columns and example queries "
        "are in docs/export.md.",
        EXAMPLES,
    )
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="a trace, or a directory, which is searched recursively for traces"
    )
    parser.add_argument("--parquet", action="store_true", help="the format, which is also the default")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("tb_bottleneck_export"),
        metavar="DIRECTORY",
        help="a new or empty directory (default: %(default)s)",
    )
    parser.set_defaults(run=_export)


def _export(options: argparse.Namespace) -> int:
    from tb_bottleneck.sources.telemetry.event_files import is_event_file

    found = [recording for path in options.paths for recording in recordings.recordings_at(path)]
    traces = [(path, run) for path, run in found if not is_event_file(path)]
    if not traces:
        raise NotFound(f"no trace was found under {', '.join(options.paths)}")
    try:
        from tb_bottleneck.export.parquet import export
    except ImportError as error:
        raise Unusable(
            'Parquet files need the package pyarrow. Install it: pip install "tb_bottleneck[parquet]"'
        ) from error
    try:
        with progress_bar() as line:
            written, problems = export(traces, options.output, line)
    except OSError as error:
        print(f"tb-bottleneck: {options.output} cannot be written: {error.strerror or error}", file=sys.stderr)
        return 1
    recordings.print_problems(problems)
    print(f"{written} of {len(traces)} recordings were written to {options.output}")
    return min(len(problems), 1)
