"""Measures what a training gained since the last run of the same program, and keeps it in the ledger of the logdir."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.commands.recordings import analysed

if TYPE_CHECKING:
    from tb_bottleneck.schema.bottleneck_pb2 import Report

MAX_READ = 3
"""At most this many earlier runs are read to find one of the program."""
SAME_WORK = 0.02
"""Largest relative difference of the model operations per step of two runs that do the same work. Chosen."""
WRITER = "tb-bottleneck run"


def gain_since_last_run(logdir: str, run: Path, after: "Report") -> str:
    """Returns a line about the gain since the last run of the program in the folder of `run`, whose report is `after`.

    Empty if there is no such run, if `after` still has its leading finding, or if the runs do other work or cannot be
    compared. Otherwise, the finding is noted as fixed, with the measured gain.
    """
    from tb_bottleneck.base.units import duration_text
    from tb_bottleneck.report.digest import WORTH_LEADING, step_ns_of
    from tb_bottleneck.report.figure_text import factor_text
    from tb_bottleneck.review.ledger import measured_gain
    from tb_bottleneck.review.notes import Action
    from tb_bottleneck.review.store import NoteWriter
    from tb_bottleneck.review.trial_notes import TRIAL, trial_text

    before, name = _last_run(run, after)
    if before is None or not before.findings or not _same_work(before, after):
        return ""
    finding = before.findings[0]
    gain = measured_gain(before, after)
    if isinstance(gain, str) or finding.cause in {each.cause for each in after.findings}:
        return ""
    writer = NoteWriter(logdir, WRITER)
    subject, fixed_in = (os.path.relpath(folder, logdir) for folder in (run.parent / name, run))
    if finding.speedup.basis != TRIAL:  # a trial takes turns, so that it is more accurate
        text = trial_text(gain.speedup, gain.low, gain.high, "the later run")
        writer.write(Action.TRIED, subject, cause=finding.cause, text=text, fixed_in=fixed_in)
    if gain.speedup >= WORTH_LEADING:
        writer.write(Action.FIXED, subject, cause=finding.cause, fixed_in=fixed_in)
    writer.close()
    times = " → ".join(duration_text(step_ns_of(report) or 0.0) for report in (before, after))
    return f"Since {name}, without [{finding.cause}]: {factor_text(gain.speedup)} as fast ({times} per step).\n"


def _last_run(run: Path, after: "Report") -> "tuple[Report | None, str]":
    """Returns the report of the last run of the program before `run`, and the name of its folder; None if unknown."""
    program = after.program.partition("-")[0]
    # The names of the monitor's folders begin with the time.
    earlier = sorted(each.name for each in run.parent.iterdir() if each.is_dir() and each.name < run.name)
    for name in reversed(earlier[-MAX_READ:]) if program else ():
        options = argparse.Namespace(
            paths=[str(run.parent / name)], no_cache=False, processes=1, scheduler="", scheduler_file="", workers=0
        )
        try:
            reports = [report for report in analysed(options).reports if report.HasField("verdict")]
        except NotFound:
            continue  # a run without recordings
        if reports and reports[0].program.partition("-")[0] == program:
            return reports[0], name
    return None, ""


def _same_work(before: "Report", after: "Report") -> bool:
    """Returns True if both runs are known to have the same device, and the same batch or operations per step."""
    one, other = before.efficiency, after.efficiency
    if before.device.name != after.device.name or one.samples_per_step != other.samples_per_step:
        return False
    work = one.model_flops_per_step, other.model_flops_per_step
    if all(work):
        return abs(work[1] / work[0] - 1) < SAME_WORK
    return bool(one.samples_per_step)
