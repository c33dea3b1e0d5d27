"""`tb-bottleneck calibrate`: measures what this machine's device really reaches, and keeps it for later runs."""

import argparse
import json
import sys
from typing import TYPE_CHECKING, TextIO

from tb_bottleneck.commands.subparser import add_subparser

if TYPE_CHECKING:
    from tb_bottleneck.commands import Subparsers
    from tb_bottleneck.tools.calibration import Calibration

_TITLES = {
    "bf16_flops": "products in bf16",
    "fp16_flops": "products in fp16",
    "tf32_flops": "products in TF32",
    "fp32_flops": "products in fp32",
    "copy_bytes_per_s": "memory, read and written",
    "h2d_pinned_bytes_per_s": "host to device, pinned",
    "h2d_pageable_bytes_per_s": "host to device, pageable",
    "d2h_pinned_bytes_per_s": "device to host, pinned",
    "launch_ns": "one small operator, host side",
}
_WIDTH = max(map(len, _TITLES.values()))

EXAMPLES = """\
examples:
  tb-bottleneck calibrate                  the GPU, or the CPU where there is none
  tb-bottleneck calibrate --device cuda:1
  tb-bottleneck calibrate --json           rates in operations and bytes per second, `launch_ns` in nanoseconds

Run it while nothing else uses the device. Once for each device and driver is enough; the figures are kept in the
directory that TB_BOTTLENECK_CACHE names, else in your own cache directory.
"""


def add(commands: "Subparsers") -> None:
    """Declares the command."""
    calibrate = add_subparser(
        commands,
        "calibrate",
        "measure what this machine's device really reaches (about 2 s)",
        "Measures products by type, copies and launches on an idle device, and keeps the figures in the user's "
        "cache directory. A monitor that starts afterwards records them with its run, and the diagnosis then "
        "holds kernels against what this device reaches instead of its data sheet.",
        EXAMPLES,
    )
    calibrate.add_argument(
        "--device", help="as torch names it: cuda, cuda:1, cpu (default: the GPU where there is one)"
    )
    calibrate.add_argument("--json", action="store_true", help="print one JSON object")
    calibrate.set_defaults(run=_calibrate)


def _calibrate(options: argparse.Namespace) -> int:
    from tb_bottleneck.monitor.facts import calibration_store

    measured = _measured(options.device)
    if options.json:
        print(
            json.dumps(
                {
                    "schema": calibration_store.SCHEMA,
                    "device": measured.device,
                    "driver": measured.driver,
                    "calibration": measured.figures,
                    "left_out": measured.left_out,
                }
            )
        )
    else:
        _print(measured)
    return _keep(measured, sys.stderr if options.json else sys.stdout)


def _measured(device: str | None) -> "Calibration":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    from tb_bottleneck.tools.calibration import calibrate

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting", total=None)

        def show(name: str, done: int, of: int) -> None:
            bar.update(task, description=_TITLES.get(name, name), completed=done, total=of)

        return calibrate(device, show)


def _print(measured: "Calibration") -> None:
    from tb_bottleneck.units import bytes_text, duration_text

    print(f"{measured.device} ({measured.driver})")
    for name, value in measured.figures.items():
        if name.endswith("_flops"):
            text = f"{value / 1e12:.1f} TFLOP/s" if value >= 1e12 else f"{value / 1e9:.1f} GFLOP/s"
        else:
            text = duration_text(value) if name.endswith("_ns") else f"{bytes_text(value)}/s"
        print(f"  {_TITLES[name]:<{_WIDTH}}  {text}")
    for name, because in measured.left_out.items():
        print(f"  {_TITLES[name]:<{_WIDTH}}  not measured: {because}")


def _keep(measured: "Calibration", told: TextIO) -> int:
    from tb_bottleneck.monitor.facts import calibration_store
    from tb_bottleneck.storage import CACHE_VARIABLE

    try:
        kept = calibration_store.keep(measured.device, measured.driver, measured.figures)
    except OSError as error:
        print(
            f"tb-bottleneck: the figures could not be kept in {calibration_store.directory()}: {error.strerror}",
            file=sys.stderr,
        )
        return 1
    if kept is None:
        words = f"Not kept: {CACHE_VARIABLE} switches the cache off."
    else:
        words = f"Kept in {kept}: runs that are monitored from now on record it."
    print(words, file=told)
    return 0
