"""A run of a comparison, judged from one recording, or from one recording per rank.

The traces of a run are judged together with the data that its monitor logged.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.comparison.significance import Times, ordinary, undisturbed
from tb_bottleneck.diagnosis.telemetry import TelemetryReader, judge_telemetry, read_all
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.report.cross_check import MIN_UNPROFILED_STEPS, join
from tb_bottleneck.report.jobs import jobs_of
from tb_bottleneck.report.memory_alert import worth_fixing
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.trace.table import Bools, Ints

Progress = Callable[[int, int], None]
TELEMETRY = "telemetry"  # the evidence source of a report without a trace


@dataclass(frozen=True, eq=False)
class JudgedRun:
    """A run that got a verdict, known from its reports.

    `reports` has one report per rank. `report` is the report of the rank that the others wait for, or of the first rank
    if there is no such rank. `telemetry_reports` are the reports about the telemetry of the run. Reports of a trace and
    of telemetry of the same process refer to each other (report/cross_check.py).
    """

    name: str
    reports: tuple[pb.Report, ...]  # one for each rank
    report: pb.Report
    telemetry_reports: tuple[pb.Report, ...] = field(default=(), kw_only=True)

    @property
    def durations(self) -> Times:
        """The step times of the rank of `report` in ns. A recording that was not split into steps counts as one
        step."""
        return np.array(self.report.window.step_times_ns or [self.step_ns], np.float64)

    @property
    def steady(self) -> Times:
        """The step times in ns without isolated long steps, which are disturbed (significance.undisturbed)."""
        durations = self.durations
        return durations[undisturbed(durations)]

    @property
    def ns(self) -> dict[Regime, float]:
        """The mean time per step by regime in ns, over all ranks, without isolated long steps. The times sum to
        `step_ns`."""
        return self._mean_account(undisturbed)

    def _mean_account(self, chosen: Callable[[Times], Bools]) -> dict[Regime, float]:
        """Returns the mean time per step by regime in ns, over all ranks and selected steps. `chosen` takes step times,
        and returns a mask of the steps to include."""
        accounts = [self._account_of_rank(report, chosen) for report in self.reports]
        return {regime: float(np.mean([account[regime] for account in accounts])) for regime in REGIMES}

    def _account_of_rank(self, report: pb.Report, chosen: Callable[[Times], Bools]) -> dict[Regime, float]:
        """Returns the mean time per step by regime in ns, over the steps of one rank that `chosen` selects.

        The report has times by regime only as the mean of all steps. Therefore, all regimes are multiplied by (mean
        time of the selected steps / mean time of all steps).
        """
        times = np.array(report.window.step_times_ns, np.float64)
        complete = len(times) == report.window.steps > 0
        scale = float(times[chosen(times)].mean() / times.mean()) if complete and times.any() else 1.0
        return {regime: _row(report, regime).ns_per_step * scale for regime in REGIMES}

    @property
    def step_ns(self) -> float:
        """The mean time per step in ns, over all ranks, without isolated long steps."""
        return sum(self.ns.values())

    @property
    def typical_ns(self) -> dict[Regime, float]:
        """The time of a typical step by regime in ns. The regimes have the same proportions as in the mean of all steps
        that are not outliers. The times sum to the median step time of one rank, scaled by (mean step time of all ranks
        / mean step time of this rank). Of telemetry, whose report does not have all step times, it is the mean step."""
        account = self._mean_account(ordinary)
        if self.from_telemetry:
            return account
        scale = self.median_ns * self.step_ns / float(np.mean(self.steady)) / sum(account.values())
        return {regime: ns * scale for regime, ns in account.items()}

    @property
    def median_ns(self) -> float:
        """The median step time in ns. If the report does not contain all step times, it is the median in the report."""
        window = self.report.window
        is_cut = len(window.step_times_ns) < window.steps and window.step_ns.median > 0
        return window.step_ns.median if is_cut else float(np.median(self.durations))

    @property
    def findings(self) -> tuple[pb.Finding, ...]:
        """The findings of all ranks, costliest first.

        Findings from telemetry are included only if no trace of the same process was joined with the telemetry.
        """
        reports = [*self.reports, *(report for report in self.telemetry_reports if not report.others)]
        findings = [finding for report in reports for finding in report.findings]
        return tuple(sorted(findings, key=lambda finding: -finding.cost_share))

    def by_telemetry(self) -> "JudgedRun | None":
        """Returns the run as its telemetry alone shows it; None if it has none with steps and a verdict."""
        reports = [report for report in self.telemetry_reports if report.HasField("verdict") and report.window.steps]
        return (
            JudgedRun(self.name, tuple(reports[-1:]), reports[-1], telemetry_reports=self.telemetry_reports)
            if reports
            else None
        )

    @property
    def causes(self) -> tuple[str, ...]:
        """The distinct causes of all findings, including the findings about memory that are worth fixing."""
        named = [finding.cause for finding in self.findings]
        named += [finding.cause for report in self.reports for finding in worth_fixing(report.memory)]
        return tuple(dict.fromkeys(named))

    @property
    def from_telemetry(self) -> bool:
        """True if the run is judged from telemetry alone."""
        return self.report.evidence_source == TELEMETRY

    @property
    def logged(self) -> pb.Window | None:
        """The latest telemetry window of the rank of `report` with at least MIN_UNPROFILED_STEPS steps, which were
        measured without a profiler; None if there is none."""
        windows = [
            report.window
            for report in (*self.telemetry_reports, *([self.report] if self.from_telemetry else []))
            if not report.HasField("rank") or report.rank == self.report.rank
        ]
        return next((window for window in reversed(windows) if window.steps >= MIN_UNPROFILED_STEPS), None)


@dataclass(frozen=True, eq=False)
class ComparedRun(JudgedRun):
    """A judged run with the recording of the rank of `report`.

    `measures` caches the measures of `recording`. `step_bounds` are the starts and the ends of the compared steps in
    ns; None means the steps of the recording.
    """

    recording: Recording
    measures: Measures[Recording]
    step_bounds: tuple[Ints, Ints] | None = field(default=None, kw_only=True)

    @property
    def bounds(self) -> tuple[Ints, Ints]:
        """The starts and the ends of the compared steps, as two arrays in ns."""
        edges = self.recording.steps.edges
        return self.step_bounds or (edges[:-1], edges[1:])

    @property
    def durations(self) -> Times:
        """The times of the compared steps in ns."""
        begins, ends = self.bounds
        return ends - begins

    @property
    def median_ns(self) -> float:
        """The median time of the compared steps in ns."""
        return float(np.median(self.durations))

    def _account_of_rank(self, report: pb.Report, chosen: Callable[[Times], Bools]) -> dict[Regime, float]:
        """Returns the mean time per step by regime in ns, over the steps of one rank that `chosen` selects. For the
        rank of the recording, the times are measured in the recording."""
        if report is not self.report:
            return super()._account_of_rank(report, chosen)
        rows, (begins, ends) = chosen(self.durations), self.bounds
        covered = self.recording.owned_spans.covered(begins[rows], ends[rows])
        return {regime: float(np.mean(covered[regime])) for regime in REGIMES}

    @property
    def rank_ns(self) -> float:
        """The mean time per step in ns of the rank of the recording, without isolated long steps."""
        return sum(self._account_of_rank(self.report, undisturbed).values())


@dataclass(frozen=True)
class UnjudgedRun:
    """A run that cannot be compared, because it got no verdict. `because` has one sentence per reason."""

    name: str
    because: tuple[str, ...]


def judge_run(
    name: str,
    paths: Sequence[str],
    progress: Progress | None = None,
    telemetry: Sequence[tuple[str, pb.Report]] = (),
    contexts: Sequence[Mapping[str, Any]] = (),
) -> ComparedRun | UnjudgedRun:
    """Reads and judges the traces of one run. `name` is the name of the run in texts, `paths` are its traces, oldest
    first.

    For each rank, the most recent trace with a verdict is used. If there is none, returns an UnjudgedRun. `telemetry`
    has the path and the report of each telemetry file of the run, `contexts` the context (settings and facts) in each
    telemetry file, oldest first. `progress` is called with the finished and the total amount of work.
    """
    judged: dict[int, tuple[str, pb.Report, Recording]] = {}
    refusals: list[str] = []
    for path in paths:
        recordings: list[Recording] = []
        report = diagnose(path, run=name, progress=progress, keep=recordings.append)
        if recordings:
            judged[report.rank] = (path, report, recordings[0])
        else:
            refusals.append(_refusal(name if len(paths) == 1 else Path(path).name, report))
    if not judged:
        return UnjudgedRun(name, tuple(refusals))
    located = [(path, report) for path, report, _ in (judged[rank] for rank in sorted(judged))]
    joined = join((os.path.dirname(path), report) for path, report in (*located, *telemetry))
    reports, telemetry_reports = tuple(joined[: len(located)]), tuple(joined[len(located) :])
    report = representative_report(reports)
    recording = with_context(judged[report.rank][2], context_of_rank(contexts, report.rank))
    return ComparedRun(name, reports, report, recording, Measures(recording), telemetry_reports=telemetry_reports)


def context_of_rank(contexts: Sequence[Mapping[str, Any]], rank: int) -> Mapping[str, Any]:
    """Returns the last of `contexts` whose entry "rank" is `rank`, or an empty dict. A context without this entry
    belongs to rank 0."""
    return next((context for context in reversed(contexts) if context.get("rank", 0) == rank), {})


def with_context(recording: Recording, logged: Mapping[str, Any]) -> Recording:
    """Returns the recording with the entries of `logged`, a context from telemetry, added to the context of its trace.
    Entries that the trace already has are kept."""
    trace = recording.trace
    context = {key: _as_integer(value) for key, value in logged.items()} | trace.header.context
    if context == trace.header.context:
        return recording
    return replace(recording, trace=replace(trace, header=replace(trace.header, context=context)))


def _as_integer(value: Any) -> Any:
    """Converts whole floats to int: telemetry stores every number as a float."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def representative_report(reports: tuple[pb.Report, ...]) -> pb.Report:
    """Returns the report of the rank that the other ranks wait for. Without such a rank, returns the first report."""
    slowest = [job.stragglers[0].rank for job in jobs_of(reports) if job.stragglers]
    return next((report for report in reports if report.rank in slowest), reports[0])


def _refusal(file: str, report: pb.Report) -> str:
    """Returns a sentence about why the recording `file` got no verdict, and what to do."""
    reasons = " ".join(f"{reason.detail} {reason.fix}" for reason in report.health.reasons[:1])
    return f"{file} is {report.health.status}: {reasons}"


def _row(report: pb.Report, regime: str) -> pb.AccountRow:
    """Returns the row of `regime` in the account (time per regime) of `report`. The row must exist."""
    return next(row for row in report.account if row.regime == regime)


def open_recordings(
    name: str, traces: Sequence[str], telemetry: Sequence[str] = (), progress: Progress | None = None
) -> ComparedRun | UnjudgedRun:
    """Reads and judges one run. `name` is its name in texts, `traces` and `telemetry` are the paths of its files,
    oldest first. Returns an UnjudgedRun if no trace gets a verdict."""
    timed = open_telemetry(name, telemetry)
    located = [(path, report) for path, report, _ in timed]
    return judge_run(name, traces, progress, located, [facts for *_, facts in timed])


def open_telemetry(name: str, paths: Sequence[str]) -> list[tuple[str, pb.Report, Mapping[str, Any]]]:
    """Returns the path, the report and the facts of each telemetry file of the run with this `name` in texts."""
    readers = [(path, TelemetryReader(path)) for path in paths]
    return [
        (path, read_all(reader, run=name) or judge_telemetry(reader, run=name), reader.telemetry.facts)
        for path, reader in readers
    ]
