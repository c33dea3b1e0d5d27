"""One examination: a training is simulated, recorded and diagnosed, and the report is laid beside the truth."""

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
from tb_bottleneck.attribution.recording import Recording as Measured
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

# How far a share of the account may be off, in shares of the window. What a recording cannot show adds up to this: a
# call that waits for less than 30 us looks like any other (ten metric reads in a step of 4 ms make 1.5 points), times
# of old recordings are whole microseconds, and a launch takes effect somewhere within its call.
TOLERANCE = 0.03
# Fewer optimizer steps than this do not show a cadence.
FEWEST_INFERRED = 4
# From which recoverable share on a run has something to cure; traceml warns from the same share on.
WORTH_RECOVERING = 0.10
# What dispatching costs while the profiler records is up to half the profiler's own.
RECOVERABLE = {
    "input": 1.0,
    "transfer": 1.0,
    "sync": 1.0,
    "launch": 0.5,
    "host": 1.0,
    "allocator": 1.0,
    "interruption": 1.0,
    "communication": 1.0,
}
BOUNDS = ("compute", "memory", "underfilled")


@dataclass(frozen=True)
class Examination:
    """A report beside the truth."""

    workload: Workload
    recording: Recording
    truth: Truth
    report: Report

    @property
    def said(self) -> dict[str, float]:
        """The report's account."""
        return {row.regime: row.share for row in self.report.account}

    @property
    def errors(self) -> dict[str, float]:
        """Said minus true, in shares of the window, by regime."""
        return {regime: share - self.truth.share(regime) for regime, share in self.said.items()}

    def worst(self) -> float:
        """The greatest error of the account, as a positive share of the window."""
        return max((abs(error) for error in self.errors.values()), default=1.0)

    def told(self) -> str:
        """The examination in words, for the message of a test that fails."""
        rows = [
            f"{regime:14} truth {self.truth.share(regime):6.3f} said {share:6.3f}"
            for regime, share in self.said.items()
            if max(share, self.truth.share(regime)) > 0.005
        ]
        verdict = f"verdict {self.report.verdict.regime} ({self.report.verdict.severity})"
        reasons = [reason.code for reason in self.report.health.reasons]
        return "\n".join([f"{self.workload}", f"{self.recording.dialect.name} {verdict} {reasons}", *rows])


def examine(workload: Workload, recording: Recording | None = None) -> Examination:
    """Simulates, records, diagnoses."""
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


def measured(workload: Workload, recording: Recording | None = None, **header: object) -> Measured:
    """Simulates and records; gives what measures are taken from. `header` adds top-level keys to the recording."""
    recording = recording or Recording(DIALECTS[3], stacks=workload.stacks, distributed=workload.buckets > 0)
    text = kineto_json(Machine(program_of(workload)).run(), recording)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "simulated.pt.trace.json"
        path.write_text(text.replace("{", "{" + "".join(f'"{k}": {json.dumps(v)}, ' for k, v in header.items()), 1))
        trace = load(str(path))
    steps = find_steps(trace)
    assert steps is not None
    return Measured(trace, steps)


def recorded(workload: Workload, seed: int) -> Recording:
    """Any way in which this training may have been recorded."""
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
    """The regimes that a verdict may name, the best first.

    Shares nearer to each other, or to the limit of what is worth recovering, than TOLERANCE are a matter of opinion.
    """
    recoverable = {regime: truth.share(regime) * factor for regime, factor in RECOVERABLE.items()}
    most = max(recoverable.values())
    cures = [regime for regime, share in recoverable.items() if share >= max(most, WORTH_RECOVERING) - TOLERANCE]
    bound = max(truth.share(regime) for regime in BOUNDS)
    bounds = [regime for regime in BOUNDS if truth.share(regime) >= bound - TOLERANCE]
    cures.sort(key=lambda regime: -recoverable[regime])
    bounds.sort(key=lambda regime: -truth.share(regime))
    if most >= WORTH_RECOVERING + TOLERANCE:
        return tuple(cures)
    if most < WORTH_RECOVERING - TOLERANCE:
        return tuple(bounds)
    return (*cures, *bounds) if most >= WORTH_RECOVERING else (*bounds, *cures)
