"""Simulates, records and diagnoses a training, and compares the report with the ground truth."""

import json
import random
import tempfile
from dataclasses import dataclass
from pathlib import Path

from simulate.kineto import DIALECTS, Recording, kineto_json
from simulate.machine import Machine
from simulate.pieces import MULTIPROCESSORS
from simulate.training import program_of
from simulate.truth import Truth, truth_of
from simulate.workload import Workload
from tb_bottleneck.attribution.trace_recording import Recording as TraceRecording
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

# Largest accepted error of a regime's share, as a share of the window. It covers what a recording cannot show: a call
# that waits for less than 30 us looks like any other (ten metric reads in a step of 4 ms make 1.5 points), times of
# old recordings are whole microseconds, and a launch takes effect at an unknown moment within its call.
TOLERANCE = 0.03
# With fewer optimizer steps, no steps can be inferred.
FEWEST_INFERRED = 4
# Smallest recoverable share that counts as a problem; traceml warns from the same share on.
WORTH_RECOVERING = 0.10
# Recoverable part of each regime's share. Of the dispatch time in a recording, up to half is profiler overhead.
RECOVERABLE = {
    "input": 1.0,
    "transfer": 1.0,
    "sync": 1.0,
    "launch": 0.5,
    "host": 1.0,
    "allocator": 1.0,
    "interruption": 1.0,
    "communication": 1.0,
    # A kernel that fills at most half of the device does twice the work in the same time.
    "underfilled": 0.5,
}
# With a smaller share, small kernels do not outweigh the other losses (the contract's rule).
UNDERFILLED_FROM = 0.30
BOUNDS = ("compute", "memory", "underfilled")


@dataclass(frozen=True)
class Examination:
    """A report and the ground truth."""

    workload: Workload
    recording: Recording
    truth: Truth
    report: Report

    @property
    def account(self) -> dict[str, float]:
        """The report's account: share by regime."""
        return {row.regime: row.share for row in self.report.account}

    @property
    def errors(self) -> dict[str, float]:
        """Reported minus true share of the window, by regime."""
        return {regime: share - self.truth.share(regime) for regime, share in self.account.items()}

    def worst(self) -> float:
        """Returns the largest absolute error of the account, as a share of the window."""
        return max((abs(error) for error in self.errors.values()), default=1.0)

    def describe(self) -> str:
        """Returns the examination as text, for the message of a failing test."""
        rows = [
            f"{regime:14} truth {self.truth.share(regime):6.3f} reported {share:6.3f}"
            for regime, share in self.account.items()
            if max(share, self.truth.share(regime)) > 0.005
        ]
        verdict = f"verdict {self.report.verdict.regime} ({self.report.verdict.severity})"
        reasons = [reason.code for reason in self.report.health.reasons]
        return "\n".join([f"{self.workload}", f"{self.recording.dialect.name} {verdict} {reasons}", *rows])


def examine(workload: Workload, recording: Recording | None = None) -> Examination:
    """Simulates, records and diagnoses a training."""
    recording = recording or Recording(DIALECTS[3], stacks=workload.stacks, distributed=workload.buckets > 0)
    program = program_of(workload)
    run = Machine(program).run()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "simulated.pt.trace.json"
        path.write_text(kineto_json(run, recording))
        report = diagnose(str(path))
    marked = recording.optimizer and workload.steps >= FEWEST_INFERRED
    basis = "profiler_step" if recording.steps else "inferred" if marked else "whole"
    multiprocessors = MULTIPROCESSORS if recording.dialect.header else None
    return Examination(workload, recording, truth_of(program, run, multiprocessors, basis), report)


def measured(workload: Workload, recording: Recording | None = None, **header: object) -> TraceRecording:
    """Simulates and records a training; returns the input of measures. `header` adds top-level keys to the trace."""
    recording = recording or Recording(DIALECTS[3], stacks=workload.stacks, distributed=workload.buckets > 0)
    text = kineto_json(Machine(program_of(workload)).run(), recording)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "simulated.pt.trace.json"
        path.write_text(text.replace("{", "{" + "".join(f'"{k}": {json.dumps(v)}, ' for k, v in header.items()), 1))
        trace = load(str(path))
    steps = find_steps(trace)
    assert steps is not None
    return TraceRecording(trace, steps)


def recorded(workload: Workload, seed: int) -> Recording:
    """Returns random recording options for this training."""
    rng = random.Random(seed * 31 + 7)
    return Recording(
        dialect=rng.choice(DIALECTS),
        steps=rng.random() < 0.75,
        stacks=workload.stacks,
        distributed=rng.random() < 0.3,
        noise=rng.random() < 0.4,
        skew_ns=rng.choice((0, 0, 0, -3_000, 2_000)),
    )


def right_answers(truth: Truth) -> tuple[str, ...]:
    """Returns the regimes that a verdict may name, best first.

    Shares that differ from each other, from WORTH_RECOVERING or from UNDERFILLED_FROM by less than TOLERANCE count as
    equal.
    """
    share = truth.share("underfilled")
    left_out = [(), ("underfilled",)] if abs(share - UNDERFILLED_FROM) < TOLERANCE else [()]
    if share <= UNDERFILLED_FROM - TOLERANCE:
        left_out = [("underfilled",)]
    return tuple(dict.fromkeys(answer for names in left_out for answer in _answers(truth, names)))


def _answers(truth: Truth, unrecoverable: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the right answers if nothing of these regimes is recoverable."""
    factors = {regime: factor for regime, factor in RECOVERABLE.items() if regime not in unrecoverable}
    recoverable = {regime: truth.share(regime) * factor for regime, factor in factors.items()}
    most = max(recoverable.values())
    fixable = [regime for regime, share in recoverable.items() if share >= max(most, WORTH_RECOVERING) - TOLERANCE]
    bound = max(truth.share(regime) for regime in BOUNDS)
    bounds = [regime for regime in BOUNDS if truth.share(regime) >= bound - TOLERANCE]
    fixable.sort(key=lambda regime: -recoverable[regime])
    bounds.sort(key=lambda regime: -truth.share(regime))
    if most >= WORTH_RECOVERING + TOLERANCE:
        return tuple(fixable)
    if most < WORTH_RECOVERING - TOLERANCE:
        return tuple(bounds)
    return (*fixable, *bounds) if most >= WORTH_RECOVERING else (*bounds, *fixable)
