"""Compares the trace and the telemetry of one process: the cost of the profiler, and regimes judged differently.

A trace shows some steps in detail and slows them down; telemetry shows all steps from outside. No verdict changes; both
reports state where the other one judges a regime differently.
"""

import re
from collections.abc import Iterable, Iterator
from string import Template

from tb_bottleneck.knowledge.telemetry_texts import telemetry_advice
from tb_bottleneck.regime import DEVICE_REGIMES, Regime
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.units import duration_text, share_text

# Shares that differ by less count as equal: steps differ by as much from one to the next.
MIN_DIFFERENCE = 0.05
# A profiler with a lower cost changes no share enough to mention it (calibration method of the replay).
MIN_PROFILER_COST = 0.05
MIN_UNPROFILED_STEPS = 20

# A directory of the monitor (monitor/writer/run_directory.py) for one rank of several: date, id of the job, rank,
# process.
_RANK_DIRECTORY = re.compile(r"\d{8}-\d{6}_([0-9a-f]{6})_rank\d+_\d+$", re.ASCII)
_JUDGED = ("fires", "clear")


def join(reports: Iterable[tuple[str, pb.Report]]) -> list[pb.Report]:
    """Returns the reports in the same order; those of a trace and of telemetry about one process refer to each other.

    Each report comes with its directory: the monitor writes traces into the directory of its telemetry, or into that of
    rank 0. The evidence source of a joined trace report is `both`.
    """
    located = [(_job_of(directory), _copy(report)) for directory, report in reports]
    judged = [(job, report) for job, report in located if report.HasField("verdict")]
    traces = [(job, report) for job, report in judged if report.evidence_source == "trace"]
    for job, telemetry in judged:
        if telemetry.evidence_source != "telemetry":
            continue
        same_process = [trace for other, trace in traces if other == job and _same_rank(trace, telemetry)]
        for trace in same_process:
            _add_telemetry(trace, telemetry)
        if same_process:
            telemetry.disagreements.extend(same_process[-1].disagreements)
    return [report for _, report in located]


def sentences_of(report: pb.Report) -> Iterator[str]:
    """Yields the sentences that the other evidence source adds."""
    if report.HasField("unprofiled"):
        yield report.unprofiled.sentence
    yield from (disagreement.sentence for disagreement in report.disagreements)


def _copy(report: pb.Report) -> pb.Report:
    copy = pb.Report()
    copy.CopyFrom(report)
    return copy


def _add_telemetry(trace: pb.Report, telemetry: pb.Report) -> None:
    trace.witness = trace.evidence_source = "both"
    trace.disagreements.extend(_disagreements(trace, telemetry))
    steps, unprofiled = telemetry.window.steps, telemetry.window.step_ns.median
    if trace.window.basis == "whole" or steps < MIN_UNPROFILED_STEPS or unprofiled <= 0:
        return
    if any(reason.code == "profiler_overhead" for reason in trace.health.reasons):
        return  # measured next to the recorded steps; the steps of a whole run may differ from them
    recorded = trace.window.step_ns.median
    ratio = recorded / unprofiled
    sentence = _profiler_cost(ratio).safe_substitute(
        unprofiled=duration_text(unprofiled), recorded=duration_text(recorded), ratio=f"{ratio:.2f}", steps=f"{steps:,}"
    )
    trace.unprofiled.MergeFrom(pb.Unprofiled(step_ns=unprofiled, steps=steps, ratio=ratio, sentence=sentence))


def _profiler_cost(ratio: float) -> Template:
    """Returns the sentence about recorded steps that take `ratio` times as long as unprofiled ones."""
    texts = telemetry_advice().cross_check
    if ratio - 1 >= MIN_PROFILER_COST:
        return texts["profiler_slows"]
    return texts["recorded_steps_faster" if 1 - ratio >= MIN_PROFILER_COST else "profiler_cheap"]


def _job_of(directory: str) -> str:
    """Returns the directory; for one rank of several, the id of the job, because all traces are in rank 0's
    directory."""
    parent, _, name = directory.replace("\\", "/").rpartition("/")
    rank = _RANK_DIRECTORY.match(name)
    return f"{parent}/{rank[1]}" if rank else directory


def _same_rank(one: pb.Report, other: pb.Report) -> bool:
    return not (one.HasField("rank") and other.HasField("rank")) or one.rank == other.rank


def _disagreements(trace: pb.Report, telemetry: pb.Report) -> Iterator[pb.Disagreement]:
    by_telemetry = {verdict.regime: verdict for verdict in telemetry.regimes}
    for verdict in trace.regimes:
        # Time that telemetry cannot explain is not a judgement that a trace could contradict.
        other = by_telemetry.get(verdict.regime) if verdict.regime != Regime.UNEXPLAINED else None
        if other is None or verdict.status == other.status or not {verdict.status, other.status} <= {*_JUDGED}:
            continue
        if verdict.regime in DEVICE_REGIMES and telemetry.device.kind == "cpu":
            continue  # a CPU has no counters for the limit of its work: the share of 0 was not measured
        if abs(verdict.share - other.share) < MIN_DIFFERENCE:
            continue
        yield pb.Disagreement(
            regime=verdict.regime,
            trace=verdict.status,
            telemetry=other.status,
            sentence=_sentence(verdict, other, telemetry),
        )


def _sentence(trace: pb.RegimeVerdict, telemetry: pb.RegimeVerdict, report: pb.Report) -> str:
    """Returns the sentence about a disagreement; `report` is that of the telemetry."""
    where = "differ_on_device" if trace.regime in DEVICE_REGIMES else "differ_on_host"
    return (
        telemetry_advice()
        .cross_check[where]
        .safe_substitute(
            title=trace.title,
            trace=share_text(trace.share),
            telemetry=share_text(telemetry.share),
            steps=f"{report.window.steps:,}",
        )
    )
