"""Builds the Report: the only place where judgements, figures and words meet."""

import math
from collections.abc import Iterable, Mapping
from string import Template

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.knowledge.advice_texts import CauseAdvice, health_advice, regime_advice
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.quality.trace_defects import Defect
from tb_bottleneck.regime import DEVICE_REGIMES, REGIMES, Regime
from tb_bottleneck.regimes.judge import RULES, WORTH_RECOVERING, Answer
from tb_bottleneck.regimes.rule import ABSTAINS, BROKEN, Cause, Verdict
from tb_bottleneck.report.builders.confidence import TOLD_BY_SHAPES
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.schema.metadata import SCHEMA
from tb_bottleneck.trace.table import Ints
from tb_bottleneck.units import bytes_text, duration_text, share_text

MOST_STEP_TIMES = 60

_FIRES_AT = {rule.regime: rule.fires_at for rule in RULES}


def empty_report(run: str, source: str) -> pb.Report:
    """A report that says only what it is about."""
    return pb.Report(schema=SCHEMA, run=run, source=source, witness="trace", evidence_source="trace")


def set_health(report: pb.Report, defects: Iterable[Defect]) -> None:
    """Health from the defects: a fatal one makes the recording incomplete, any other degrades it."""
    found = list(defects)
    fatal = any(defect.fatal for defect in found)
    report.health.status = "incomplete" if fatal else "degraded" if found else "ok"
    for defect in found:
        report.health.reasons.append(_reason(defect.code, defect.facts))


def set_unreadable(report: pb.Report, code: str, error: str) -> None:
    """Health of a file that gave no trace."""
    report.health.status = "unreadable"
    report.health.reasons.append(_reason(code, {"error": error}))


def set_window(report: pb.Report, recording: Recording) -> None:
    """The judged window and its step times."""
    durations = recording.steps.durations
    p10, median, p90 = (float(value) for value in np.percentile(durations, (10, 50, 90)))
    report.window.steps = len(recording.steps)
    report.window.basis = recording.steps.basis
    report.window.step_ns.MergeFrom(pb.Spread(median=median, p10=p10, p90=p90))
    report.window.begin_ns, report.window.end_ns = float(recording.steps.begin), float(recording.steps.end)
    report.window.step_times_ns.extend(_thinned(durations))


def _thinned(durations: Ints) -> list[float]:
    """At most MOST_STEP_TIMES of them, each the longest of its neighbours: rare long steps are what is looked for."""
    together = -(-len(durations) // MOST_STEP_TIMES)
    longest = np.maximum.reduceat(durations, np.arange(0, len(durations), together))
    return [float(duration) for duration in longest.tolist()]


def set_account(report: pb.Report, recording: Recording) -> None:
    """Who owns the time: every regime, in the order of the design."""
    account, steps = recording.account, len(recording.steps)
    for regime in REGIMES:
        words = regime_advice(regime)
        report.account.add(
            regime=regime,
            share=account.share(regime),
            ns_per_step=account.ns[regime] / steps,
            title=regime.label,
            meaning=words.meaning,
        )


def set_verdicts(report: pb.Report, verdicts: tuple[Verdict, ...], answer: Answer) -> None:
    """Every regime's judgement, and the findings of those that fire: the answer's own first, then the dearest."""
    findings = []
    for verdict in verdicts:
        report.regimes.append(_regime_verdict(report, verdict))
        cut = report.window.basis != "whole"
        findings += [_finding(verdict, cause, cut) for cause in verdict.judgement.causes]
    findings.sort(key=lambda finding: (finding.regime != answer.regime, -finding.cost_share))
    report.findings.extend(findings)


def set_answer(report: pb.Report, answer: Answer, verdicts: tuple[Verdict, ...], confidence: str) -> None:
    """The one answer, with its headline: the dearest cause's own where it has one."""
    words = regime_advice(answer.regime)
    verdict = next(verdict for verdict in verdicts if verdict.regime == answer.regime)
    dearest = max(verdict.judgement.causes, key=lambda cause: cause.cost_share, default=None)
    template = (words.causes[dearest.name].headline if dearest is not None else None) or words.headline
    headline = template.safe_substitute(_figures(verdict.facts), **_common(report, answer.share))
    if answer.severity == "none" and answer.regime in DEVICE_REGIMES:
        unknown = next((v.judgement.share for v in verdicts if v.regime == Regime.UNEXPLAINED), 0.0)
        headline += (
            f" Nothing recorded explains {share_text(unknown)} of the time."
            if unknown >= WORTH_RECOVERING
            else " Nothing else is worth more than a tenth of the time."
        )
    report.verdict.MergeFrom(
        pb.Verdict(
            regime=answer.regime,
            share=answer.share,
            severity=answer.severity,
            confidence=confidence,
            headline=headline,
            title=Regime(answer.regime).label,
        )
    )


def _regime_verdict(report: pb.Report, verdict: Verdict) -> pb.RegimeVerdict:
    words, judgement = regime_advice(verdict.regime), verdict.judgement
    if judgement.status == BROKEN:
        because = "This rule failed on this recording; that is our fault, and the other rules are unharmed."
    elif judgement.status == ABSTAINS:
        because = words.because[ABSTAINS].safe_substitute(missing=judgement.missing)
    else:
        fires_at = share_text(_FIRES_AT.get(verdict.regime, 0.0))
        because = (
            words.because[judgement.status]
            .safe_substitute(_common(report, judgement.share), fires_at=fires_at, roofs=_roofs(verdict.facts))
            .strip()
        )
    return pb.RegimeVerdict(
        regime=verdict.regime,
        status=judgement.status,
        share=judgement.share,
        because=because,
        title=verdict.regime.label,
    )


def _finding(verdict: Verdict, cause: Cause, cut: bool) -> pb.Finding:
    words = regime_advice(verdict.regime).causes[cause.name]
    return pb.Finding(
        cause=cause.name,
        regime=verdict.regime,
        cost_share=cause.cost_share,
        speedup=_speedup(verdict, cause),
        evidence=_evidence(words, verdict.facts, cut),
        fix=pb.Fix(
            summary=words.summary, code=words.code.safe_substitute(_figures(verdict.facts)), confirm=words.confirm
        ),
        title=words.title,
    )


def _speedup(verdict: Verdict, cause: Cause) -> pb.Speedup:
    """A bound, not a promise: at best the regime's recoverable share goes away, at worst nothing does."""
    recoverable = min(verdict.judgement.recoverable, cause.cost_share)
    if not cause.bounded or not 0 < recoverable < 1:
        return pb.Speedup(expected=1, low=1, high=1, basis="none")
    best = 1 / (1 - recoverable)
    return pb.Speedup(expected=best, low=1, high=best, basis="bound")


def _evidence(words: CauseAdvice, facts: Mapping[str, Measure | Missing], cut: bool) -> list[pb.Evidence]:
    """Rows of evidence. `cut` tells whether the recording was cut into steps: else counts are of all of it."""
    rows, each = [], "per step" if cut else "in all"
    for line in words.evidence:
        fact = facts[line.measure]
        if line.optional and isinstance(fact, Missing):
            continue
        row = pb.Evidence(label=Template(line.label).safe_substitute(each=each), compared_with=line.compared_with)
        if isinstance(fact, Missing):
            row.unit, row.text, row.compared_with = "text", f"not known: {fact.because}", ""
        elif fact.unit == "text":
            row.unit, row.text = "text", fact.text
        elif math.isfinite(fact.value):
            row.unit, row.value = fact.unit, fact.value
        if isinstance(fact, Measure) and fact.begin is not None and fact.end is not None:
            row.begin_ns, row.end_ns = float(fact.begin), float(fact.end)
        rows.append(row)
    return rows


def _reason(code: str, facts: Mapping[str, float | str]) -> pb.HealthReason:
    words = health_advice(code)
    shown = {name: _shown(name, value) for name, value in facts.items()}
    return pb.HealthReason(code=code, detail=words.detail.safe_substitute(shown), fix=words.fix)


def _shown(name: str, value: float | str) -> str:
    if isinstance(value, str):
        return value
    if name == "share":
        return share_text(value)
    return duration_text(value) if name == "pause" else bytes_text(value) if name == "bytes" else f"{value:,.0f}"


def _figures(facts: Mapping[str, Measure | Missing]) -> dict[str, str]:
    """Counts and shares among the facts, for templates."""
    shown = {"count": lambda value: f"{value:,.0f}", "share": share_text}
    return {
        name: shown[fact.unit](fact.value)
        for name, fact in facts.items()
        if isinstance(fact, Measure) and fact.unit in shown
    }


def _roofs(facts: Mapping[str, Measure | Missing]) -> str:
    """How the bound of kernels was told, and how near they come to it; empty where there are none."""
    known = facts.get("roofs_known")
    if not isinstance(known, Measure):
        return ""
    if known.value < TOLD_BY_SHAPES:
        return "Told from kernel names; record_shapes=True would tell it from the work that the kernels do."
    reached = facts.get("compute_reached") or facts.get("memory_reached")
    near = f" They reach {share_text(reached.value)} of what the device could." if isinstance(reached, Measure) else ""
    return f"Told from shapes for {share_text(known.value)} of the kernels' time.{near}"


def _common(report: pb.Report, share: float) -> dict[str, str]:
    """What every template may use."""
    return {
        "share": share_text(share),
        "device": "CPU" if report.device.kind == "cpu" else "GPU",
        "idle_device": report.device.name or "A GPU",
        "per": "the recorded time" if report.window.basis == "whole" else "each step",
    }
