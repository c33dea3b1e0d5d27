"""Compares the trace and the telemetry of one process: the cost of the profiler, the judgements of regimes, and the
numbers of operators that grow during the run.

A trace shows some steps in detail and slows them down; telemetry shows all steps from outside. Both reports state which
regimes the other report judges differently, and both get the verdict of the trusted source.
"""

from collections.abc import Iterable, Iterator, Sequence

from tb_bottleneck.base.regime import DEVICE_REGIMES, Regime
from tb_bottleneck.base.units import share_text
from tb_bottleneck.bottlenecks.texts import telemetry_advice
from tb_bottleneck.report.builders.action import led_by_action
from tb_bottleneck.report.builders.evidence_source_texts import for_program, sentence_about
from tb_bottleneck.report.builders.gains import lowered_severity
from tb_bottleneck.report.efficiency.figures import joined_efficiency, with_rates
from tb_bottleneck.report.memory_alert import joined_memory, with_alert_of
from tb_bottleneck.report.profiler_slowdown import unprofiled_of
from tb_bottleneck.report.same_process import pairs_of
from tb_bottleneck.report.trace_or_telemetry import SEEN_ON_THE_THREAD, TIMED_IN_THE_RUN, Trust, trust_of
from tb_bottleneck.schema import bottleneck_pb2 as pb

CAUSE = "growing_steps"
"""The name of the cause in bottlenecks/drift/telemetry_rule.py, repeated here to avoid the imports of that module."""
GROWS = 1.3
MAX_NAMED = 3


def with_growth(telemetry: pb.Report, traces: Sequence[pb.Report]) -> pb.Report:
    """Returns a copy of `telemetry` whose finding about longer steps names the operators with the largest growth, and
    the place that calls them.

    Compares the operators per step in the first and the last of `traces`, which are in order of time. Adds nothing
    without this finding, or with fewer than two traces.
    """
    report = _copy(telemetry)
    finding = next((finding for finding in report.findings if finding.cause == CAUSE), None)
    counted = [trace for trace in traces if trace.operators]
    if finding is None or len(counted) < 2:
        return report
    before, after = ({row.name: row.per_step for row in trace.operators} for trace in (counted[0], counted[-1]))
    total = [sum(counts.values()) for counts in (before, after)]
    row = finding.evidence.add(unit="text", label="Operators per step in the first and the last trace")
    if total[1] < GROWS * total[0]:
        row.text = f"{total[0]:,.0f} and {total[1]:,.0f}: their number does not grow"
        return report
    grown = sorted(after, key=lambda name: before.get(name, 0.0) - after[name])[:MAX_NAMED]
    named = ", ".join(f"{name} {before.get(name, 0.0):,.0f} to {after[name]:,.0f}" for name in grown)
    row.text = f"{total[0]:,.0f} to {total[1]:,.0f}; {named}"
    place = next((row.place for row in counted[-1].operators if row.name == grown[0] and row.HasField("place")), None)
    if place is not None and not finding.where:
        finding.where.append(place)
        if finding is report.findings[0]:
            report.verdict.headline += sentence_about(finding.where)
    return report


# Shares that differ by less count as equal, because shares of consecutive steps differ by as much.
MIN_DIFFERENCE = 0.05
MIN_UNPROFILED_STEPS = 20

ABOUT_THE_RUN = frozenset({"compilation", "growing_steps", "growing_within_epochs"})
"""Causes that only telemetry shows. If a run has one of these causes, the steps of a trace are not like the other steps
of the run."""

_JUDGED = ("fires", "clear")


def join(reports: Iterable[tuple[str, pb.Report]]) -> list[pb.Report]:
    """Returns new reports in the same order, in which the trace and the telemetry of one process are joined.

    `reports` are pairs of directory and report. The monitor writes traces into the directory of its telemetry, or into
    the directory of rank 0; a profiler in the training itself writes into the logdir that was given to the monitor. The
    evidence source of a joined trace report is `both`.
    """
    located = [(directory, _copy(report)) for directory, report in reports]
    judged = [at for at, (_, report) in enumerate(located) if report.HasField("verdict")]
    pairs = [(judged[trace], judged[telemetry]) for trace, telemetry in pairs_of([located[at] for at in judged])]
    joined = [report for _, report in located]
    alone: dict[int, pb.Report] = {}
    for at in (at for at in judged if joined[at].evidence_source == "telemetry"):
        traces = sorted((joined[trace] for trace, of in pairs if of == at), key=lambda trace: trace.source)
        report = with_growth(joined[at], traces)
        for trace_report in reversed(traces):  # the latest one is most like the state of the run
            report = _with_causes_on_thread(report, trace_report)
            if trust_of(trace_report, report).source == "telemetry":
                report = _with_places(report, trace_report)
        joined[at] = alone[at] = report
    for trace, telemetry in pairs:
        joined[trace] = _with_gains_of_run(joined[trace], alone[telemetry])
        joined[trace], joined[telemetry] = _joined(joined[trace], joined[telemetry], alone[telemetry])
    return joined


def _joined(trace: pb.Report, telemetry: pb.Report, alone: pb.Report) -> tuple[pb.Report, pb.Report]:
    """Returns the reports of a trace and of telemetry, each with the results of the other one. `alone` is the report of
    the telemetry before it was joined with any trace."""
    trust = trust_of(trace, alone)
    verdicts = {"trace": trace.verdict, "telemetry": alone.verdict}
    efficiency = joined_efficiency(trace, telemetry)
    both = _with_telemetry(trace, alone, efficiency)
    run = _copy(telemetry)
    if efficiency is not None:
        run.efficiency.CopyFrom(efficiency[1])
    del run.step_parts[:]
    run.step_parts.extend(trace.step_parts)
    disagreements = _disagreements(trace, alone)
    others = list(_others(verdicts, trust))
    said = with_alert_of(verdicts[trust.source], verdicts.values())
    if trust.doubtful:
        said.confidence = "low"
    for report in (both, run):
        del report.others[:], report.disagreements[:]
        report.disagreements.extend(disagreements)
        report.others.extend(others)
        report.verdict.CopyFrom(said)
        if said.severity != "none":
            del report.headroom[:]
    trusted, other = (both, run) if trust.source == "trace" else (run, both)
    _lead_with(trusted, other)
    named = {finding.cause for finding in both.findings}
    both.findings.extend(f for f in alone.findings if _is_outside_steps(f) and f.cause not in named)
    if trace.program_file:
        run.program_file = trace.program_file
        for fix in (finding.fix for report in (both, run) for finding in report.findings):
            fix.code, fix.command = (for_program(text, trace.program_file) for text in (fix.code, fix.command))
    memory = joined_memory(both, run), joined_memory(run, both)
    for report, part in zip((both, run), memory, strict=True):
        if part is not None:
            report.memory.CopyFrom(part)
    return both, run


def _with_gains_of_run(trace: pb.Report, telemetry: pb.Report) -> pb.Report:
    """Returns a copy of `trace` in which the gains of causes that the monitor times in each step are those that a model
    of the run predicts. The plan ends with the first of them if it begins with it, otherwise before it, because its
    fixes were simulated together."""
    gains = {
        finding.cause: finding.speedup
        for finding in telemetry.findings
        if finding.regime in TIMED_IN_THE_RUN and finding.speedup.basis == "replay"
    }
    replaced = [finding.cause for finding in trace.findings if finding.cause in gains]
    if not replaced:
        return trace
    report = _copy(trace)
    for finding in report.findings:
        if finding.cause in gains:
            finding.speedup.CopyFrom(gains[finding.cause])
    kept = next((at for at, step in enumerate(report.plan) if step.cause in gains), len(report.plan))
    first = report.plan[0] if report.plan and kept == 0 else None
    if first is not None:
        gain = gains[first.cause]
        first.speedup_total, first.low, first.high, first.assumes = gain.expected, gain.low, gain.high, gain.assumes
        first.step_ns_after = report.window.step_ns.mean / gain.expected
    del report.plan[max(kept, 1 if first is not None else 0) :]
    report.verdict.severity = lowered_severity(report)
    return led_by_action(report)


def _is_outside_steps(finding: pb.Finding) -> bool:
    """Returns True if `finding`, a finding of the telemetry, is about something that the few steps of a trace need not
    contain: the run as a whole, or interruptions between some steps."""
    return finding.cause in ABOUT_THE_RUN or finding.regime == Regime.INTERRUPTION


def _with_causes_on_thread(telemetry: pb.Report, trace: pb.Report) -> pb.Report:
    """Returns a copy of `telemetry` whose findings about waits for batches are those of the trace, if its Python frames
    show what the training thread waits for."""
    causes = [finding for finding in trace.findings if finding.cause in SEEN_ON_THE_THREAD]
    report = _copy(telemetry)
    at = next((at for at, finding in enumerate(report.findings) if finding.regime == Regime.INPUT), None)
    if causes and at is not None:
        others = [finding for finding in telemetry.findings if finding.regime != Regime.INPUT]
        del report.findings[:]
        report.findings.extend([*others[:at], *map(_without_times, causes), *others[at:]])
        if at == 0 and trace.verdict.regime == telemetry.verdict.regime:
            report.verdict.headline = trace.verdict.headline  # that of telemetry may name the other cause
        return led_by_action(report)
    return report


def _without_times(finding: pb.Finding) -> pb.Finding:
    """Returns a copy without the times of occurrences, which are on the clock of another recording."""
    copy = _copy_of(finding)
    for row in copy.evidence:
        row.ClearField("begin_ns")
        row.ClearField("end_ns")
    return copy


def _with_places(telemetry: pb.Report, trace: pb.Report) -> pb.Report:
    """Returns a copy of `telemetry` whose findings and headline name the places of the trace's findings about the same
    regimes. A wait for the device outside of the phases of a step is Python outside torch for telemetry."""
    report = _copy(telemetry)
    for finding in report.findings:
        regimes = (Regime.HOST, Regime.SYNC) if finding.regime == Regime.HOST else (finding.regime,)
        of_regime = [other for other in trace.findings if other.regime in regimes and other.where]
        any_of_it = finding.cause in ABOUT_THE_RUN and finding.regime == Regime.COMPUTE  # other places take longer
        if finding.where or any_of_it or not of_regime:
            continue
        finding.where.extend(max(of_regime, key=lambda other: other.cost_share).where)
        if finding.regime == report.verdict.regime and finding is report.findings[0]:
            report.verdict.headline += sentence_about(finding.where)
    return report


def _lead_with(trusted: pb.Report, other: pb.Report) -> None:
    """Copies the findings of `trusted` about its verdict's regime to the front of `other`, and removes the findings
    that `other` had about this regime.

    Times of occurrences are removed from the copies, because they are on the clock of another recording."""
    regime = trusted.verdict.regime
    leading = [_without_times(finding) for finding in trusted.findings if finding.regime == regime]
    if not leading:
        return
    rest = [finding for finding in other.findings if finding.regime != regime]
    del other.findings[:]
    other.findings.extend([*leading, *rest])
    _cut_plan(other)


def _cut_plan(report: pb.Report) -> None:
    """Removes from the plan the first fix whose cause is no longer a finding, and all later fixes.

    Later fixes are removed too, because they were simulated together with the removed fix."""
    causes = {finding.cause for finding in report.findings}
    kept = next((at for at, step in enumerate(report.plan) if step.cause not in causes), len(report.plan))
    del report.plan[kept:]


def _others(verdicts: dict[str, pb.Verdict], trust: Trust) -> Iterator[pb.OtherVerdict]:
    for source, verdict in verdicts.items():
        yield pb.OtherVerdict(witness=source, verdict=verdict, trusted=source == trust.source, because=trust.because)


def sentences_of(report: pb.Report) -> Iterator[str]:
    """Yields sentences about differences between the trace and the telemetry."""
    if len({other.verdict.regime for other in report.others}) > 1:
        for other in report.others:
            if not other.trusted:
                yield _alone(other)
    yield from (disagreement.sentence for disagreement in report.disagreements)


def _alone(other: pb.OtherVerdict) -> str:
    """Returns a sentence that states the verdict `other` of the evidence source that is not trusted, and why this
    source is not trusted."""
    text = telemetry_advice().cross_check["alone"]
    return text.safe_substitute(source=other.witness, headline=other.verdict.headline, because=other.because)


def _copy_of(finding: pb.Finding) -> pb.Finding:
    copy = pb.Finding()
    copy.CopyFrom(finding)
    return copy


def _copy(report: pb.Report) -> pb.Report:
    copy = pb.Report()
    copy.CopyFrom(report)
    return copy


def _with_telemetry(
    trace: pb.Report, telemetry: pb.Report, efficiency: tuple[pb.Efficiency, pb.Efficiency] | None
) -> pb.Report:
    """Returns a copy of `trace` with what the telemetry measured over the run, and with the joined `efficiency`."""
    report = _copy(trace)
    report.witness = report.evidence_source = "both"
    if efficiency is not None:
        report.efficiency.CopyFrom(efficiency[0])
    if telemetry.HasField("run_time"):
        report.run_time.CopyFrom(telemetry.run_time)
    steps, unprofiled = telemetry.window.steps, telemetry.window.step_ns.median
    if report.window.basis == "whole" or steps < MIN_UNPROFILED_STEPS or unprofiled <= 0:
        return report
    if not report.HasField("unprofiled"):  # otherwise, it was measured next to the recorded steps
        codes = [reason.code for reason in report.health.reasons]
        corrected = report.window.HasField("recorded_step_ns")
        recorded = report.window.recorded_step_ns if corrected else report.window.step_ns.median
        report.unprofiled.CopyFrom(unprofiled_of(unprofiled, steps, recorded, codes, corrected=corrected))
    report.unprofiled.run_step_ns, report.unprofiled.run_steps = telemetry.window.step_ns.mean, steps
    if report.HasField("efficiency"):
        report.efficiency.CopyFrom(with_rates(report.efficiency, report))
    return report


def _disagreements(trace: pb.Report, telemetry: pb.Report) -> list[pb.Disagreement]:
    """Returns the regimes that the trace and the telemetry judge differently. The last sentence about the host, and the
    last one about the device, say which source to trust."""
    texts, found = telemetry_advice().cross_check, list[pb.Disagreement]()
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
        sentence = texts[f"differ_on_{_side(verdict.regime)}"].safe_substitute(
            title=verdict.title,
            trace=share_text(verdict.share),
            telemetry=share_text(other.share),
            steps=f"{telemetry.window.steps:,}",
        )
        found.append(
            pb.Disagreement(regime=verdict.regime, trace=verdict.status, telemetry=other.status, sentence=sentence)
        )
    for side, last in {_side(each.regime): each for each in found}.items():
        last.sentence += f" {texts[f'trust_on_{side}'].template}"
    return found


def _side(regime: str) -> str:
    return "device" if regime in DEVICE_REGIMES else "host"
