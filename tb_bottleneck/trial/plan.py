"""Trials of the fixes that a report suggests, in order of their expected gain; what helps is kept for the next ones."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.trial.changes import Change, parsed
from tb_bottleneck.trial.statistics import MeasuredGain
from tb_bottleneck.trial.trial import Runner, Trial, run_trial


@dataclass(frozen=True)
class Expectation:
    """A finding of a recording, the change to try for it (None: no setting fixes it), and its predicted gain."""

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
    """One fix: what was expected, the trial, and whether it was kept. No trial: there was no setting, or no time."""

    expectation: Expectation
    trial: Trial | None = None
    kept: bool = False

    @property
    def gain(self) -> MeasuredGain | None:
        """The measured gain on top of the fixes that were kept before."""
        return None if self.trial is None else self.trial.gain(self.trial.changed[0])


def expectations(report: pb.Report, run: str) -> list[Expectation]:
    """Returns the findings of a report, the largest expected gain first."""
    findings = sorted(report.findings, key=lambda finding: -finding.speedup.expected)
    return [Expectation(run, each.cause, each.title, _change(each.fix.trial), each.speedup) for each in findings]


def _change(text: str) -> Change | None:
    """Returns the change of a finding. Of several values, the largest."""
    return parsed(text.split())[-1] if text else None


def run_plan(
    runner: Runner,
    expected: Sequence[Expectation],
    deadline: float,
    told: Callable[[Trial, str], None],
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[PlanStep]:
    """Yields a step for each expectation. Raises BlockFailed if the unchanged program gives no steps."""
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
    """Yields the list at the end: expected, measured, kept or not."""
    for step in steps:
        change = step.expectation.change
        name = change.name if change is not None else "no setting fixes it"
        gain = step.gain
        measured = "not measured" if gain is None else f"{gain.gain:.2f}x measured, {gain.verdict}"
        kept = "kept" if step.kept else "not kept"
        yield f"{step.expectation.title} [{step.expectation.cause}]"
        yield f"  {name}: {step.expectation.text}; {measured}{'' if gain is None else ', ' + kept}"
