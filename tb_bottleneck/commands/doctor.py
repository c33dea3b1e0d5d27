"""`tb-bottleneck doctor`: checks on this machine whether each signal of the monitor is right."""

import argparse
import signal
import sys
from typing import TYPE_CHECKING

from tb_bottleneck.commands.arguments import add_subparser
from tb_bottleneck.commands.terminal import progress_bar, stdout_layout

if TYPE_CHECKING:
    from tb_bottleneck.commands import Subparsers

EXAMPLES = """\
examples:
  tb-bottleneck doctor                     a table with both figures of each check, and what to change
  tb-bottleneck doctor --json > doctor.json   for a bug report: no names of hosts or users, no paths
  tb-bottleneck doctor --seconds 600       on a slow or busy machine
  torchrun --nproc-per-node=8 -m tb_bottleneck doctor --job
                                           code or machine? compares the machines of all ranks of a job

results:
  works              both sources agree
  works with limits  it can be used, and the row says what is missing
  does not work      the sources disagree, or nothing was recorded: verdicts that need it are wrong or missing
  not present        this machine does not have it, such as a GPU
  cannot tell        it was not measured, or the noise is larger than the figure

Run it while nothing else uses the machine, once per device and version of the driver. Only the measured peak rates of
the device are kept, in the directory TB_BOTTLENECK_CACHE or else in your cache directory; a monitor that starts
afterwards records them. CUDA_VISIBLE_DEVICES=1 examines another GPU, -1 the CPU.

exit status: 0, also with --job; 1 if something does not work; 2 if torch is missing: TensorBoard is checked even then
"""

MIN_SECONDS, MAX_SECONDS = 20, 3600


def add(commands: "Subparsers") -> None:
    """Adds the command with its arguments to `commands`, the subparsers of the command line."""
    doctor = add_subparser(
        commands,
        "doctor",
        "check that each signal of the monitor is right on this machine (about half a minute)",
        "Trains a small model under the monitor, on the GPU if there is one, and compares each signal with a second "
        "source: step times with another clock, waits for data and copies with known ones, device time with the "
        "kernels of the trace, counters of the driver with torch. It also records a trace, measures the overhead of "
        "the monitor and the peak rates of the device, and starts TensorBoard.",
        EXAMPLES,
    )
    doctor.add_argument("--json", action="store_true", help="print one JSON object")
    doctor.add_argument(
        "--seconds",
        type=_seconds,
        default=120.0,
        metavar="S",
        help="limit of the whole check; each part has its share of it (default: 120)",
    )
    doctor.add_argument(
        "--job",
        action="store_true",
        help="in each rank of a job: compare the devices, cores, memory and links of all ranks "
        "(about 5 s; longer if ranks share cores)",
    )
    doctor.set_defaults(run=_doctor)


def _seconds(text: str) -> float:
    if not (text.isascii() and text.isdecimal() and MIN_SECONDS <= int(text) <= MAX_SECONDS):
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number from {MIN_SECONDS} to {MAX_SECONDS}")
    return float(text)


def _job(as_json: bool) -> int:
    """Compares the machines of the ranks of a job. Rank 0 prints the result."""
    import json
    import os

    from tb_bottleneck.jobs.machines import figure_table, slow_machines, verdict_text
    from tb_bottleneck.monitor.machine_check import job_figures

    figures = job_figures()
    found = slow_machines(figures, on_cpu=not any("device_copy" in each for each in figures))
    if os.environ["RANK"] == "0":
        verdict, sentences = verdict_text(found, len(figures)), [each.sentence for each in found]
        if as_json:
            print(json.dumps({"verdict": verdict, "slow": sentences, "ranks": figures}, indent=1))
        else:
            print(stdout_layout().text([verdict, *sentences, "", *figure_table(figures)]))
    return 0  # torchrun would report any other status as a failed job


def _doctor(options: argparse.Namespace) -> int:
    import json

    if options.job:
        return _job(options.json)
    from tb_bottleneck.doctor.examination import examine
    from tb_bottleneck.doctor.results import as_json, as_text

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that SIGTERM leaves no process or folder
    try:
        with progress_bar() as begin:
            examination = examine(options.seconds, begin)
    finally:
        signal.signal(signal.SIGTERM, before)
    print(
        json.dumps(as_json(examination), indent=1) if options.json else as_text(examination, stdout_layout()).rstrip()
    )
    if not examination.has_torch:
        print(
            f"tb-bottleneck: torch is not installed for {sys.executable}, so only TensorBoard was checked",
            file=sys.stderr,
        )
    return examination.status
