"""Builds the Report of one process's telemetry: the same message as a trace's, in words for telemetry."""

import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.knowledge.advice_texts import Line, regime_advice
from tb_bottleneck.knowledge.telemetry_texts import telemetry_advice
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.measures.telemetry.recoverable import stakes_of
from tb_bottleneck.quality.trace_defects import Defect
from tb_bottleneck.regime import REGIMES, Regime
from tb_bottleneck.regimes.judge import Answer
from tb_bottleneck.regimes.rule import ABSTAINS, BROKEN, FIRES, Cause, Verdict
from tb_bottleneck.regimes.telemetry.judge import RULES
from tb_bottleneck.report.builders import trace_report
from tb_bottleneck.report.builders.telemetry_phases import Band
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.schema.metadata import SCHEMA
from tb_bottleneck.units import share_text

_FIRES_AT = {rule.regime: rule.fires_at for rule in RULES}
_LONGEST_NAME = 200

MIN_STEPS, MIN_READINGS = 2, 10
ENOUGH_STEPS = 20
"""For more than low confidence: traceml's minimum (diagnostics/step_time/policy.py)."""

MOST_STEP_TIMES = 60
"""Step times that the report shows, each the longest of its neighbours."""

DOUBT = 0.25
"""More idle time than this that is not explained puts every other share in doubt; as for traces
(report/builders/confidence.py)."""


def empty_report(run: str, source: str) -> pb.Report:
    """A report that says only what it is about."""
    return pb.Report(schema=SCHEMA, run=run, source=source, witness="telemetry", evidence_source="telemetry")


def defects(testimony: TelemetryRecording, dropped: Mapping[str, int]) -> Iterator[Defect]:
    """What is wrong with the telemetry; a fatal one leaves nothing that could be judged."""
    steps = len(testimony.steps)
    readings = len(testimony.windows.readings("gpu_utilisation", of_device=True)[0])
    if steps < MIN_STEPS and readings < MIN_READINGS:
        code = "ended_without_steps" if testimony.telemetry.ended else "insufficient_telemetry"
        yield Defect(code, True, {"steps": steps, "readings": readings})
    elif steps < MIN_STEPS:
        yield Defect("no_step_clock", False)
    if testimony.telemetry.lost_packets:
        yield Defect("packets_lost", False, {"packets": float(testimony.telemetry.lost_packets)})
    if dropped:
        reason = max(dropped, key=lambda name: dropped[name]).replace("_", " ")
        yield Defect("readings_dropped", False, {"count": float(sum(dropped.values())), "reason": reason})


def set_origin(report: pb.Report, testimony: TelemetryRecording) -> None:
    """Which process this is, and its device, as the run's context says."""
    facts = testimony.facts
    rank, world = testimony.fact("rank"), testimony.fact("world_size")
    if rank is not None and 0 <= rank < 1 << 31:
        report.rank = int(rank)
    if world is not None and 0 < world < 1 << 31:
        report.world_size = int(world)
    name = facts.get("device_name")
    kind = facts.get("device_kind")
    known = kind if kind in ("cuda", "rocm", "cpu", "xpu") else "cuda" if testimony.on_device else "cpu"
    kind = "cuda" if testimony.on_device and known == "cpu" else known
    report.device.MergeFrom(
        pb.Device(
            name=name[:_LONGEST_NAME] if isinstance(name, str) and known == kind else "",
            kind=kind,
            count=max(len(testimony.telemetry.devices), 1),
        )
    )


def set_window(report: pb.Report, testimony: TelemetryRecording) -> None:
    """The judged time, on the clock of the world, and the steps in it."""
    grid = testimony.windows.grid
    _, _, mean = testimony.windows.highest("wall")
    report.window.steps = len(testimony.steps)
    report.window.basis = "step_clock" if len(testimony.steps) else "whole"
    report.window.begin_ns, report.window.end_ns = float(grid.begin), float(grid.edges[-1])
    if len(mean):
        p10, median, p90 = (float(value) for value in np.percentile(mean, (10, 50, 90)))
        report.window.step_ns.MergeFrom(pb.Spread(median=median, p10=p10, p90=p90))
        _, highest, _ = testimony.windows.highest("wall")
        together = -(-len(highest) // MOST_STEP_TIMES)
        report.window.step_times_ns.extend(np.maximum.reduceat(highest, np.arange(0, len(highest), together)).tolist())


def set_account(report: pb.Report, testimony: TelemetryRecording) -> None:
    """Who owns the time: every regime, in the order of the design."""
    account, steps = testimony.account, max(len(testimony.steps), 1)
    for regime in REGIMES:
        words = regime_advice(regime)
        share, each = account.share(regime), account.ns[regime] / steps
        report.account.add(regime=regime, share=share, ns_per_step=each, title=regime.label, meaning=words.meaning)


def set_health(report: pb.Report, found: list[Defect]) -> None:
    """Health from the defects."""
    trace_report.set_health(report, found)


def set_verdicts(report: pb.Report, verdicts: tuple[Verdict, ...], answer: Answer) -> None:
    """Every regime's judgement, and the findings: the answer's own first, then the dearest. A cause that several
    regimes name, as too few cores, is one finding."""
    for verdict in verdicts:
        report.regimes.append(_regime_verdict(report, verdict))
    findings = [_finding(verdict, cause) for verdict in verdicts for cause in verdict.judgement.causes]
    findings.sort(key=lambda finding: (finding.regime != answer.regime, -finding.cost_share))
    once = {finding.cause: finding for finding in reversed(findings)}
    report.findings.extend(finding for finding in findings if once[finding.cause] is finding)


def set_answer(report: pb.Report, answer: Answer, verdicts: tuple[Verdict, ...], confidence: str) -> None:
    """The one answer, with its headline: the dearest cause's own where it has one."""
    advice = telemetry_advice()
    verdict = next(verdict for verdict in verdicts if verdict.regime == answer.regime)
    causes = sorted(verdict.judgement.causes, key=lambda cause: -cause.cost_share) if answer.severity != "none" else []
    own = advice.causes[causes[0].name].headline if causes else None
    template = own or (advice.headline.get(answer.regime) or regime_advice(answer.regime).headline)
    share = causes[0].cost_share if own is not None and causes else answer.share
    headline = template.safe_substitute(_figures(verdict.facts), **_common(report, share))
    if answer.severity == "none":
        headline += " Nothing that telemetry shows is worth more than a tenth of the time."
    report.verdict.MergeFrom(
        pb.Verdict(
            regime=answer.regime,
            share=answer.share,
            severity=answer.severity,
            confidence=confidence,
            headline=headline,
            title=_title(answer.regime, answer.severity),
        )
    )


def set_stretches(report: pb.Report, bands: Iterable[Band]) -> None:
    """Who owned the time when."""
    for band in bands:
        report.phases.add(
            begin_ns=float(band.begin),
            end_ns=float(band.end),
            regime=band.regime,
            share=band.share,
            severity=band.severity,
            title=_title(band.regime, band.severity),
        )


def _title(regime: str, severity: str) -> str:
    """The regime in words. A device that works undisturbed, at what is not told, is not called unexplained; one that
    works, but is held down by heat or by other threads, is not called sound."""
    words, title = telemetry_advice().stretch, Regime(regime).label
    if (regime, severity) == (Regime.UNEXPLAINED, "none"):
        return words["at_work"].template
    return words["held"].safe_substitute(title=title) if regime == Regime.COMPUTE and severity != "none" else title


def confidence_of(testimony: TelemetryRecording, answer: Answer, found: list[Defect]) -> str:
    """medium at best: telemetry sees steps from outside. Low with few steps, losses, or much that nothing explains; the
    device's own work is no riddle to the others, only what bounds it."""
    told = answer.regime not in (Regime.MEMORY, Regime.COMPUTE, Regime.UNDERFILLED) or testimony.bounds.counters
    puzzles = testimony.mean(stakes_of(testimony)[Regime.UNEXPLAINED], "share", "no window is known")
    puzzled = isinstance(puzzles, Missing) or puzzles.value > DOUBT
    doubt = answer.regime == Regime.UNEXPLAINED or (puzzled and answer.regime != Regime.GPU_UNUSED)
    return "medium" if len(testimony.steps) >= ENOUGH_STEPS and told and not doubt and not found else "low"


def _regime_verdict(report: pb.Report, verdict: Verdict) -> pb.RegimeVerdict:
    judgement, because = verdict.judgement, telemetry_advice().because
    title = Regime(verdict.regime).label
    if judgement.status == BROKEN:
        words = "This rule failed on this telemetry; that is our fault, and the other rules are unharmed."
    elif judgement.status == ABSTAINS:
        words = because[ABSTAINS].safe_substitute(missing=judgement.missing)
    else:
        fires_at = _FIRES_AT.get(verdict.regime, 0.0)
        named = judgement.status == FIRES and judgement.share < fires_at
        key = "named" if named else judgement.status if judgement.share > 0 else "unowned"
        words = because[key].safe_substitute(_common(report, judgement.share), fires_at=share_text(fires_at))
    return pb.RegimeVerdict(
        regime=verdict.regime, status=judgement.status, share=judgement.share, because=words, title=title
    )


def _finding(verdict: Verdict, cause: Cause) -> pb.Finding:
    words = telemetry_advice().causes[cause.name]
    code = words.code.safe_substitute(_figures(verdict.facts))
    return pb.Finding(
        cause=cause.name,
        regime=verdict.regime,
        cost_share=cause.cost_share,
        speedup=_speedup(cause),
        evidence=list(_evidence(cause, verdict.facts)),
        fix=pb.Fix(summary=words.summary, code=code, confirm=words.confirm),
        title=words.title,
    )


def _speedup(cause: Cause) -> pb.Speedup:
    if not cause.bounded or not 0 < cause.cost_share < 1:
        return pb.Speedup(expected=1, low=1, high=1, basis="none")
    best = 1 / (1 - cause.cost_share)
    return pb.Speedup(expected=best, low=1, high=best, basis="bound")


def _evidence(cause: Cause, facts: Mapping[str, Measure | Missing]) -> Iterator[pb.Evidence]:
    for measure in cause.evidence:
        line, fact = telemetry_advice().lines[measure.__name__], facts[measure.__name__]
        if not (line.optional and isinstance(fact, Missing)):
            yield _row(line, fact)


def _row(line: Line, fact: Measure | Missing) -> pb.Evidence:
    row = pb.Evidence(label=line.label, compared_with=line.compared_with)
    if isinstance(fact, Missing):
        row.unit, row.text = "text", f"not known: {fact.because}"
    elif fact.unit == "text":
        row.unit, row.text = "text", fact.text
    elif math.isfinite(fact.value):
        row.unit, row.value = fact.unit, fact.value
    return row


def _figures(facts: Mapping[str, Measure | Missing]) -> dict[str, str]:
    shown = {"count": lambda fact: f"{fact.value:,.0f}", "share": lambda fact: share_text(fact.value)}
    shown["text"] = lambda fact: fact.text
    known = {name: fact for name, fact in facts.items() if isinstance(fact, Measure) and fact.unit in shown}
    return {name: shown[fact.unit](fact) for name, fact in known.items()}


def _common(report: pb.Report, share: float) -> dict[str, str]:
    return {
        "share": share_text(share),
        "device": "CPU" if report.device.kind == "cpu" else "GPU",
        "idle_device": report.device.name or "A GPU",
        "per": "each step" if report.window.steps else "the recorded time",
    }
