"""`tb-bottleneck what-if`: predicts a run under other conditions."""

import argparse
from typing import TYPE_CHECKING

from tb_bottleneck.commands.arguments import add_subparser, open_run
from tb_bottleneck.commands.terminal import progress_bar, stdout_layout

if TYPE_CHECKING:
    from tb_bottleneck.commands import Subparsers

EXAMPLES = """\
examples:
  tb-bottleneck what-if runs/mine                           a table of the usual devices, batches and worker counts
  tb-bottleneck what-if runs/mine --device "NVIDIA H200"    expected step time on a faster device, and its limits
  tb-bottleneck what-if runs/mine --workers 8 --batch 64
  tb-bottleneck what-if runs/mine --precision bf16
  tb-bottleneck what-if runs/mine --link gen4x16

Kernels are scaled by the compute or memory limit that bounds them, copies by the bandwidth of the link; host times
stay as recorded. The recording is then replayed with these times. The result lists the assumptions. The exit status is
1 if nothing can be predicted.
"""

MAX_COUNT = 1 << 30


def add(commands: "Subparsers") -> None:
    """Adds the command with its arguments to `commands`, the subparsers of the command line."""
    parser = add_subparser(
        commands,
        "what-if",
        "predict a run on another device, or with other workers, batch, precision or link",
        "Predicts a recorded run under other conditions: the expected step time with an interval, its account "
        "per regime, and what to fix first so that the change has an effect.",
        EXAMPLES,
    )
    parser.add_argument("path", metavar="RUN", help="a trace file, or a directory with one run")
    parser.add_argument("--device", metavar="NAME", help='another device, by the name that torch uses: "NVIDIA H200"')
    parser.add_argument("--workers", type=_workers, metavar="N", help="number of DataLoader worker processes")
    parser.add_argument("--batch", type=_count, metavar="N", help="samples per step of one process")
    parser.add_argument("--precision", choices=("bf16", "fp16", "tf32"), help="data type of the matrix multiplications")
    parser.add_argument("--link", metavar="LINK", help="PCIe link between host and device, as in gen4x16")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_what_if)


def _workers(text: str) -> int:
    return 0 if text == "0" else _count(text)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 12 and 0 < int(text) <= MAX_COUNT):
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number from 1 to {MAX_COUNT}")
    return int(text)


def _what_if(options: argparse.Namespace) -> int:
    from tb_bottleneck.comparison.what_if.prediction import WhatIfOptions, what_if
    from tb_bottleneck.comparison.what_if.table import what_if_table
    from tb_bottleneck.report.json_form import as_json
    from tb_bottleneck.text.comparison import render_what_if, render_what_if_table

    changes = WhatIfOptions(options.device, options.workers, options.batch, options.precision, options.link)
    with progress_bar() as begin:
        run = open_run(options.path, begin(options.path))
    if changes == WhatIfOptions():
        table = what_if_table(run)
        print(as_json(table) if options.json else render_what_if_table(table, stdout_layout()), end="")
        return int(not table.rows)
    prediction = what_if(run, changes)
    if options.json:
        print(as_json(prediction))
    else:
        print(render_what_if(prediction, stdout_layout()), end="")
    return int(not prediction.HasField("after"))
