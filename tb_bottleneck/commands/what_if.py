"""`tb-bottleneck what-if`: a run under other conditions, predicted before money or time is spent on it."""

import argparse
from typing import TYPE_CHECKING

from tb_bottleneck.commands.progress_bar import progress_bar
from tb_bottleneck.commands.run_argument import open_run
from tb_bottleneck.commands.subparser import add_subparser

if TYPE_CHECKING:
    from tb_bottleneck.commands import Subparsers

EXAMPLES = """\
examples:
  tb-bottleneck what-if runs/mine --device "NVIDIA H200"    would a faster device help, and what would hold it back?
  tb-bottleneck what-if runs/mine --workers 8 --batch 64
  tb-bottleneck what-if runs/mine --precision bf16
  tb-bottleneck what-if runs/mine --link gen4x16

Kernels are scaled by the roof that bounds them, copies by the link, and everything on the host stays as it was
recorded; the recording is then replayed with these times. What was assumed is printed with the answer.
"""

MOST = 1 << 30


def add(commands: "Subparsers") -> None:
    """Declares the command."""
    asked = add_subparser(
        commands,
        "what-if",
        "predict a run on another device, with other workers, batch, precision or link",
        "Predicts how a recorded run would go under other conditions: the expected step time with an "
        "interval, who would own it then, and what to mend first so that the change is not wasted.",
        EXAMPLES,
    )
    asked.add_argument("path", metavar="RUN", help="a trace file, or a directory with one run")
    asked.add_argument("--device", metavar="NAME", help='another device, as torch names it: "NVIDIA H200"')
    asked.add_argument("--workers", type=_count, metavar="N", help="worker processes of the loader, 1 or more")
    asked.add_argument("--batch", type=_count, metavar="N", help="samples per step, in one process")
    asked.add_argument("--precision", choices=("bf16", "fp16", "tf32"), help="the type that products run in")
    asked.add_argument("--link", metavar="LINK", help="the link between host and device: gen4x16")
    asked.add_argument("--json", action="store_true", help="print one JSON object")
    asked.set_defaults(run=_what_if)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 12 and 0 < int(text) <= MOST):
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number from 1 to {MOST}")
    return int(text)


def _what_if(options: argparse.Namespace) -> int:
    from tb_bottleneck.comparison.texts.terminal import render_what_if
    from tb_bottleneck.comparison.what_if.prediction import WhatIfOptions, what_if
    from tb_bottleneck.report.rendering.json_form import as_json

    asked = WhatIfOptions(options.device, options.workers, options.batch, options.precision, options.link)
    with progress_bar() as begin:
        side = open_run(options.path, begin(options.path))
    told = what_if(side, asked)
    print(as_json(told) if options.json else render_what_if(told), end="\n" if options.json else "")
    return 0
