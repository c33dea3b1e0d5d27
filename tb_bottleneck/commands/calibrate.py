"""`tb-bottleneck calibrate`: measures the peak rates of this machine's device and stores them for later runs."""

import argparse
import json
import sys
from typing import TYPE_CHECKING, TextIO

from tb_bottleneck.commands.arguments import add_subparser

if TYPE_CHECKING:
    from tb_bottleneck.commands import Subparsers
    from tb_bottleneck.tools.calibration import Calibration

_TITLES = {
    "bf16_flops": "matmul in bf16",
    "fp16_flops": "matmul in fp16",
    "tf32_flops": "matmul in TF32",
    "fp32_flops": "matmul in fp32",
    "copy_bytes_per_s": "memory, read + write",
    "h2d_pinned_bytes_per_s": "host to device, pinned",
    "h2d_pageable_bytes_per_s": "host to device, pageable",
    "d2h_pinned_bytes_per_s": "device to host, pinned",
    "launch_ns": "launch of one small operator",
}
_WIDTH = max(map(len, _TITLES.values()))

EXAMPLES = """\
examples:
  tb-bottleneck calibrate                  the GPU, or the CPU if there is none
  tb-bottleneck calibrate --device cuda:1
  tb-bottleneck calibrate --json           rates in FLOP/s and bytes/s, `launch_ns` in nanoseconds

Run it while nothing else uses the device. Once per device and driver version is enough. The results are stored in the
directory TB_BOTTLENECK_CACHE, or else in your cache directory.
"""


def add(commands: "Subparsers") -> None:
    """Adds the command with its arguments to `commands`, the subparsers of the command line."""
    calibrate = add_subparser(
        commands,
        "calibrate",
        "measure the peak rates of this machine's device (about 2 s)",
        "Measures matrix multiplications per data type, copies and launches on an idle device, and stores the "
        "results in your cache directory. A monitor that starts afterwards records them with its run; the "
        "diagnosis then compares kernels with these rates instead of the data sheet.",
        EXAMPLES,
    )
    calibrate.add_argument(
        "--device", help="device in torch's notation: cuda, cuda:1, cpu (default: the GPU if there is one)"
    )
    calibrate.add_argument("--json", action="store_true", help="print one JSON object")
    calibrate.set_defaults(run=_calibrate)


def _calibrate(options: argparse.Namespace) -> int:
    from tb_bottleneck.base import calibrations

    measured = _measured(options.device)
    if options.json:
        print(
            json.dumps(
                {
                    "schema": calibrations.CALIBRATION_SCHEMA,
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
    from tb_bottleneck.base.units import bytes_text, duration_text

    print(f"{measured.device} ({measured.driver})")
    for name, value in measured.figures.items():
        if name.endswith("_flops"):
            text = f"{value / 1e12:.1f} TFLOP/s" if value >= 1e12 else f"{value / 1e9:.1f} GFLOP/s"
        else:
            text = duration_text(value) if name.endswith("_ns") else f"{bytes_text(value)}/s"
        print(f"  {_TITLES[name]:<{_WIDTH}}  {text}")
    for name, because in measured.left_out.items():
        print(f"  {_TITLES[name]:<{_WIDTH}}  not measured: {because}")


def _keep(measured: "Calibration", output: TextIO) -> int:
    from tb_bottleneck.base import calibrations
    from tb_bottleneck.base.persistence import CACHE_VARIABLE

    try:
        path = calibrations.save(measured.device, measured.driver, measured.figures)
    except OSError as error:
        print(
            f"tb-bottleneck: the results could not be stored in {calibrations.directory()}: {error.strerror}",
            file=sys.stderr,
        )
        return 1
    if path is None:
        text = f"Not stored: {CACHE_VARIABLE} switches the cache off."
    else:
        text = f"Stored in {path}. Monitored runs record it from now on."
    print(text, file=output)
    return 0
