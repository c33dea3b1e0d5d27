"""One side of a comparison: a run as it was recorded, by one recording or by one of each rank."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.regime import REGIMES, Regime
from tb_bottleneck.report.jobs import jobs_of
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.trace.table import Floats, Ints

Times = Ints | Floats
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Judged:
    """A run that got a verdict. `report` is of the rank that the others wait for, else of the first.

    `heard` is what its monitor's telemetry says, where there is some.
    """

    name: str
    reports: tuple[pb.Report, ...]  # one for each rank
    report: pb.Report
    heard: tuple[pb.Report, ...] = field(default=(), kw_only=True)

    @property
    def durations(self) -> Times:
        """Step times in ns. A recording that was not cut into steps has one: all of it."""
        told = self.report.window.each_ns or [self.step_ns]
        return np.array(told, np.float64)

    @property
    def ns(self) -> dict[Regime, float]:
        """Time per step by regime, in ns, mean over the ranks; sums to `step_ns`."""
        return {
            regime: float(np.mean([_row(report, regime).ns_per_step for report in self.reports])) for regime in REGIMES
        }

    @property
    def step_ns(self) -> float:
        """Mean time per step."""
        return sum(self.ns.values())

    @property
    def findings(self) -> tuple[pb.Finding, ...]:
        """What was found in any rank and by either witness, dearest first."""
        found = [finding for report in (*self.reports, *self.heard) for finding in report.findings]
        return tuple(sorted(found, key=lambda finding: -finding.cost_share))

    @property
    def causes(self) -> tuple[str, ...]:
        """Their causes, each once."""
        return tuple(dict.fromkeys(finding.cause for finding in self.findings))


@dataclass(frozen=True, eq=False)
class Side(Judged):
    """A run whose recording is here; it is of the same rank as `report`."""

    recording: Recording
    measures: Measures[Recording]

    @property
    def durations(self) -> Times:
        """Step times in ns."""
        return self.recording.steps.durations


@dataclass(frozen=True)
class Unjudged:
    """A run that cannot be compared, and the reasons, one sentence each."""

    name: str
    because: tuple[str, ...]


def open_side(
    name: str,
    paths: Sequence[str],
    progress: Progress | None = None,
    heard: Sequence[pb.Report] = (),
    logged: Sequence[Mapping[str, Any]] = (),
) -> Side | Unjudged:
    """Reads and judges the recordings of one run, the oldest first: of each rank the last one that gets a verdict.

    `heard` are the reports of its telemetry, `logged` the contexts in it, the oldest first.
    """
    kept: dict[int, tuple[pb.Report, Recording]] = {}
    failed: list[str] = []
    for path in paths:
        found: list[Recording] = []
        report = diagnose(path, run=name, progress=progress, keep=found.append)
        if found:
            kept[report.rank] = (report, found[0])
        failed += [] if found else [_refusal(Path(path).name, report)]
    if not kept:
        return Unjudged(name, tuple(failed))
    reports = tuple(kept[rank][0] for rank in sorted(kept))
    report = of_ranks(reports)
    recording = knowing(kept[report.rank][1], of_rank(logged, report.rank))
    return Side(name, reports, report, recording, Measures(recording), heard=tuple(heard))


def of_rank(logged: Sequence[Mapping[str, Any]], rank: int) -> Mapping[str, Any]:
    """The last of these contexts that is of this rank, else empty; a process that names no rank is the first."""
    return next((facts for facts in reversed(logged) if facts.get("rank", 0) == rank), {})


def knowing(recording: Recording, logged: Mapping[str, Any]) -> Recording:
    """The same recording with what the run's monitor logged around it; what the trace itself says goes before."""
    trace = recording.trace
    context = {key: whole(value) for key, value in logged.items()} | trace.header.context
    if context == trace.header.context:
        return recording
    return replace(recording, trace=replace(trace, header=replace(trace.header, context=context)))


def whole(value: Any) -> Any:
    """Telemetry spells every number with a fraction: those that have none become whole again."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def of_ranks(reports: tuple[pb.Report, ...]) -> pb.Report:
    """The report of the rank that the others wait for, else the first."""
    slowest = [job.stragglers[0].rank for job in jobs_of(reports) if job.stragglers]
    return next((report for report in reports if report.rank in slowest), reports[0])


def _refusal(file: str, report: pb.Report) -> str:
    reasons = " ".join(f"{reason.detail} {reason.fix}" for reason in report.health.reasons[:1])
    return f"{file} is {report.health.status}: {reasons}"


def _row(report: pb.Report, regime: str) -> pb.AccountRow:
    return next(row for row in report.account if row.regime == regime)
