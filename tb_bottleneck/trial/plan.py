"""Tries the fixes that a report suggests, in the order of their expected gains. A fix that helps is kept in the trials
of the next ones."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tb_bottleneck.bottlenecks.texts import EDIT
from tb_bottleneck.diagnosis.telemetry import diagnose_telemetry
from tb_bottleneck.diagnosis.trace_or_snapshot import diagnose_recording
from tb_bottleneck.monitor.facts.process import program_hash
from tb_bottleneck.report.cross_check import join
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.sources.telemetry.event_files import is_event_file
from tb_bottleneck.trial.changes import Change, parsed
from tb_bottleneck.trial.statistics import MeasuredGain
from tb_bottleneck.trial.trial import Runner, Trial, run_trial

MAX_READ = 8
"""At most this many recordings of a logdir are read to find one of the program."""


@dataclass(frozen=True)
class Expectation:
    """A finding in the report about the recording `run`, with the change that may fix it and the predicted gain.

    `change` is None if no setting fixes the finding. `speedup` is the predicted gain.
    """

    run: str
    cause: str
    title: str
    change: Change | None
    speedup: pb.Speedup

    @property
    def text(self) -> str:
        """The predicted gain in words."""
        gain = self.speedup
        if gain.basis in ("", "none"):
            return "no gain predicted"
        if gain.basis == "bound":
            return f"up to {gain.high:.2f}x expected"
        return f"{gain.expected:.2f}x expected ({gain.low:.2f} to {gain.high:.2f})"


@dataclass(frozen=True)
class PlanStep:
    """The trial of one fix: what was expected, the trial, and True if the fix was kept.

    `trial` is None if no setting fixes the finding, if the setting was tried already, or if there was no time.
    """

    expectation: Expectation
    trial: Trial | None = None
    kept: bool = False

    @property
    def gain(self) -> MeasuredGain | None:
        """The measured gain compared with the program with all fixes kept before; None without a trial."""
        return None if self.trial is None else self.trial.gain(self.trial.changed[0])


def expectations(report: pb.Report, run: str) -> list[Expectation]:
    """Returns the findings of `report`, the largest expected gain first. `run` is the name of the recording."""
    findings = sorted(report.findings, key=lambda finding: -finding.speedup.expected)
    return [Expectation(run, each.cause, each.title, _change(each.fix.trial), each.speedup) for each in findings]


def newest_expectations(recordings: Sequence[tuple[str, str]], program: Sequence[str]) -> list[Expectation]:
    """Returns the findings of the newest recording of the program; empty if there is none.

    `recordings` are pairs (file, name of the run). `program` has the words of the command after the interpreter. A
    recording of the program with the same arguments is preferred, then one with other arguments, then one in which the
    program is not recorded.
    """
    wanted = _hash_of(program)
    found = dict[int, list[Expectation]]()
    for path, run in sorted(recordings, key=lambda each: -os.stat(each[0]).st_mtime_ns)[:MAX_READ]:
        report = _joined(diagnose_recording(path), path, [each for each, of in recordings if of == run])
        likeness = _likeness(report.program, wanted)
        if likeness is not None and likeness not in found and report.findings:
            found[likeness] = expectations(report, run)
        if EQUAL in found:
            break
    return found[min(found)] if found else []


def _joined(report: pb.Report, path: str, files: Sequence[str]) -> pb.Report:
    """Returns `report`, about the trace at `path`, joined with the telemetry of the same run if it is among `files`."""
    folder, telemetry = os.path.dirname(path), next(filter(is_event_file, files), None)
    if telemetry is None or is_event_file(path):
        return report
    return join([(folder, report), (folder, diagnose_telemetry(telemetry))])[0]


def _hash_of(program: Sequence[str]) -> str:
    if program[0] == "-m":
        return program_hash(program[1].replace(".", "/"), program[2:])
    return program_hash(program[0], program[1:])


EQUAL, OTHER_ARGUMENTS, UNKNOWN = range(3)


def _likeness(recorded: str, wanted: str) -> int | None:
    """Returns how well `recorded`, the hash of the recorded program, matches the hash `wanted`: EQUAL, OTHER_ARGUMENTS
    or UNKNOWN (no hash was recorded). None for another program."""
    if not recorded:
        return UNKNOWN
    if recorded == wanted:
        return EQUAL
    return OTHER_ARGUMENTS if recorded.partition("-")[0] == wanted.partition("-")[0] else None


def _change(text: str) -> Change | None:
    """Returns the change that a finding suggests as `text`; None if there is none or the program has to be edited.

    If several values are suggested, returns the change with the last one, which is the largest.
    """
    return parsed(text.split())[-1] if text and not text.startswith(EDIT) else None


def run_plan(
    runner: Runner,
    expected: Sequence[Expectation],
    deadline: float,
    told: Callable[[Trial, str], None],
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[PlanStep]:
    """Tries the change of each of `expected`, and yields a PlanStep for each. Changes that help are kept in later
    trials.

    `runner` runs the blocks, and `told` is as in run_trial. No trial starts after `deadline` (s, on `clock`).

    Raises BlockFailed if no step of the unchanged program can be measured.
    """
    base, tried = Change(), list[Change]()
    for each in expected:
        if each.change is None or each.change in tried or clock() > deadline:
            yield PlanStep(each)
            continue
        tried.append(each.change)
        trial = run_trial(runner, [base.combined(each.change)], deadline, base, told, clock)
        gain = trial.gain(trial.changed[0])
        kept = gain is not None and gain.verdict == "faster"
        if kept:
            base = base.combined(each.change)
        yield PlanStep(each, trial, kept)
        if trial.interrupted:
            return


def plan_lines(steps: Sequence[PlanStep]) -> Iterator[str]:
    """Yields the lines of the summary: for each step the expected and the measured gain, and whether the fix was
    kept."""
    for step in steps:
        change = step.expectation.change
        name = change.name if change is not None else "no setting fixes it"
        gain = step.gain
        measured = "not measured" if gain is None else f"{gain.gain:.2f}x measured, {gain.verdict}"
        kept = "kept" if step.kept else "not kept"
        yield f"{step.expectation.title} [{step.expectation.cause}]"
        yield f"  {name}: {step.expectation.text}; {measured}{'' if gain is None else ', ' + kept}"
