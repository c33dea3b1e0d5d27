"""`tb-bottleneck tree`: where the time goes, by module, function, operator or record_function range."""

import argparse
import re
from typing import TYPE_CHECKING

from tb_bottleneck.commands.arguments import add_subparser, recordings_of
from tb_bottleneck.commands.terminal import progress_bar, stdout_layout

if TYPE_CHECKING:
    from collections.abc import Callable

    from tb_bottleneck.commands import Subparsers
    from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
    from tb_bottleneck.drilldown.tree.tree import Tree

EXAMPLES = """\
examples:
  tb-bottleneck tree runs/mine                              the time of each nn.Module, forward and backward
  tb-bottleneck tree trace.json.gz --by line --find loss    functions of the program with "loss" in their names
  tb-bottleneck tree runs/mine --by operator --sort device  operators, with FLOP per byte and share of the roofline
  tb-bottleneck tree runs/mine --by kernel                  kernels, with the share of the roofline
  tb-bottleneck tree runs/mine --by communication           collectives by process group and size, with their rate
  tb-bottleneck tree runs/mine --against runs/before        what became faster or slower, and where

Time is the time of the judged window that belongs to a row and all rows below it; it sums to the account of
`diagnose`. The time in which the device is idle belongs to what the host does meanwhile, and the backward pass to the
modules and functions of the forward pass. Device and Host add up device operations and rows of the host, which may
overlap.
"""

_RANGE = re.compile(r"([1-9]\d{0,8})(?:-([1-9]\d{0,8}))?", re.ASCII)
_DEFAULT_ROWS = 40


def add(commands: "Subparsers") -> None:
    """Adds the command with its arguments to `commands`, the subparsers of the command line."""
    parser = add_subparser(
        commands,
        "tree",
        "show where the time goes: by module, function, operator, range, kernel or communication",
        "Shows a recording as a tree: time, device and host time, waits, bytes, floating-point operations and memory "
        "by module, function (with the line of its def), operator or record_function range; or as a list of kernels or "
        "communications.",
        EXAMPLES,
    )
    parser.add_argument("path", metavar="RUN", help="a trace file, or a directory with one run")
    parser.add_argument(
        "--by",
        choices=("module", "line", "operator", "range", "kernel", "communication"),
        default="module",
        help="what the rows are (module)",
    )
    parser.add_argument("--against", metavar="RUN", help="another run, to show the difference from it")
    parser.add_argument(
        "--sort", default="time", metavar="COLUMN", help="time, device, host, wait, bytes, flops, memory or calls"
    )
    parser.add_argument("--rows", type=_count, default=_DEFAULT_ROWS, metavar="N", help="number of rows (40)")
    parser.add_argument("--depth", type=_count, metavar="N", help="number of levels")
    parser.add_argument("--find", metavar="TEXT", help="only rows with this text in their names, and those around them")
    parser.add_argument("--merge", action="store_true", help="one row for modules that differ only in their numbers")
    parser.add_argument("--steps", type=_steps, metavar="A-B", help="only these steps of the window, counted from 1")
    parser.add_argument("--device", type=_index, metavar="N", help="index of the device, if several worked")
    parser.add_argument("--json", action="store_true", help="print one JSON object with all rows")
    parser.set_defaults(run=_tree)


def _tree(options: argparse.Namespace) -> int:
    from dataclasses import replace

    from tb_bottleneck.base.errors import NotFound
    from tb_bottleneck.drilldown.tree.selection import Selection, selected_tree
    from tb_bottleneck.text.drilldown_tree import SORTS

    if options.sort not in SORTS:
        raise NotFound(f"--sort {options.sort}: must be one of {', '.join(SORTS)}")
    first, last = options.steps or (None, None)
    selection = Selection(options.by, options.device, first, last, options.merge)
    with progress_bar() as begin:
        inspected = _open(options.path, begin(options.path))
        other = _open(options.against, begin(options.against)) if options.against else None
    tree = selected_tree(inspected, selection)
    if other is not None:
        _show_difference(selected_tree(other, replace(selection, first_step=None, last_step=None)), tree, options)
    else:
        _show(inspected, tree, options)
    return 0


def _show(inspected: "InspectedTrace", tree: "Tree", options: argparse.Namespace) -> None:
    import json

    from tb_bottleneck.base.units import duration_text, share_text
    from tb_bottleneck.drilldown.tree.message import notes_of
    from tb_bottleneck.drilldown.tree.selection import devices_of, largest, matching
    from tb_bottleneck.text.drilldown_tree import grouping_text, tree_dict, tree_text

    notes, whole = notes_of(inspected.trace, tree), tree
    outermost = None
    if options.find:
        tree, outermost = matching(tree, options.find)
    if options.json:
        devices = [{"index": each.index, "name": each.name, "total_ns": each.total} for each in devices_of(inspected)]
        facts = {
            "schema": 1,
            "run": options.path,
            "by": tree.by,
            "begin_ns": tree.window_begin,
            "window_ns": tree.window,
            "steps": tree.steps,
        }
        print(json.dumps({**facts, "devices": devices, "notes": notes, "tree": tree_dict(tree)}))
        return
    layout = stdout_layout()
    steps = (
        f"{tree.steps} steps of {duration_text(tree.window / tree.steps)}"
        if tree.steps > 1
        else duration_text(tree.window)
    )
    print(f"Time by {grouping_text(tree)}: {steps}" + (", times and counts are per step" if tree.steps > 1 else ""))
    if outermost is not None:
        found = float(whole.exclusive[0] and tree.exclusive[outermost].sum())
        print(
            f'"{options.find}" is in {len(outermost)} names with {share_text(found / max(tree.window, 1))} of the time'
        )
    print(tree_text(largest(tree, options.rows, options.sort), layout, options.sort, options.depth), end="")
    for note in notes:
        print(layout.text([note]), end="")


def _show_difference(before: "Tree", after: "Tree", options: argparse.Namespace) -> None:
    import json

    from tb_bottleneck.base.units import one_line
    from tb_bottleneck.drilldown.tree.message import aligned
    from tb_bottleneck.drilldown.tree.selection import largest_change, matching
    from tb_bottleneck.text.drilldown_tree import difference_text, grouping_text, tree_dict

    a, b = aligned(before, after)
    if options.find:
        (a, _), (b, _) = matching(a, options.find), matching(b, options.find)
    if options.json:
        facts = {"schema": 1, "before": options.against, "after": options.path, "by": a.by}
        sides = {
            name: {"window_ns": side.window, "steps": side.steps, "tree": tree_dict(side)}
            for name, side in (("a", a), ("b", b))
        }
        print(json.dumps({**facts, **sides}))
        return
    before_name, after_name = one_line(options.against), one_line(options.path)
    print(f"Time by {grouping_text(a)}, per step: {before_name} (before) and {after_name} (after)")
    print(difference_text(*largest_change(a, b, options.rows), stdout_layout(), options.depth), end="")


def _open(path: str, progress: "Callable[[int, int], None] | None") -> "InspectedTrace":
    """Reads the last trace of a run. Raises NotFound and Unreadable."""
    from tb_bottleneck.drilldown.inspected_trace import load_inspected

    return load_inspected(recordings_of(path).traces[-1], progress)


def _steps(text: str) -> tuple[int, int]:
    match = _RANGE.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r}: must be a step or a range of steps, as in 2 or 2-4")
    return int(match[1]), int(match[2] or match[1])


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < int(text[:10]) <= 1_000_000):
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number from 1 to 1000000")
    return int(text)


def _index(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise argparse.ArgumentTypeError(f"{text!r}: must be the index of a device, 0 or larger")
    return int(text)
