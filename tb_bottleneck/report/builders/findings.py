"""The parts of a report that depend on the verdicts: the verdict, the judgement of each regime, and the findings."""

import math
from collections.abc import Iterator
from string import Template

from tb_bottleneck.base.measure import Measure, Missing, Record
from tb_bottleneck.base.regime import AVOIDABLE_REGIMES
from tb_bottleneck.bottlenecks.judge import Conclusion, program_leads
from tb_bottleneck.bottlenecks.plan import Prediction
from tb_bottleneck.bottlenecks.rule_types import BROKEN, MACHINE_CAUSES, AnyCause, AnyVerdict
from tb_bottleneck.bottlenecks.texts import guide_of, trial_of
from tb_bottleneck.report.builders.action import action_of
from tb_bottleneck.report.builders.evidence_source_texts import (
    ANY_PROGRAM,
    Context,
    Places,
    SourceTexts,
    figures,
    fitted_code,
    for_program,
    most_of_it,
    place_rows,
)
from tb_bottleneck.report.builders.gains import NotPredicted, stated_confidence, stated_gain, stated_severity
from tb_bottleneck.schema import bottleneck_pb2 as pb


class Diagnosis(Record, frozen=True):
    """The verdicts of all regimes, the conclusion from them, and the confidence in it.

    `confidence` is high, medium or low. `situation` has sentences about the kind of training and about its timers; it
    is empty if neither is known.
    """

    verdicts: tuple[AnyVerdict, ...]
    conclusion: Conclusion
    confidence: str
    situation: str = ""


def causes_by_cost(diagnosis: Diagnosis, texts: SourceTexts) -> list[tuple[AnyVerdict, AnyCause]]:
    """Returns pairs of a verdict and one of its causes, in the order of findings: causes of the conclusion's regime
    first, then the others, each sorted by cost.

    If a cause of the program has a comparable cost, causes of the machine come last among the causes of the
    conclusion's regime and last among the others. A cause that several regimes name with the same texts, such as too
    few cores, is listed once."""
    named = [(verdict, cause) for verdict in diagnosis.verdicts for cause in verdict.judgement.causes]
    last = MACHINE_CAUSES if program_leads(diagnosis.verdicts) else frozenset()
    named.sort(
        key=lambda pair: (pair[0].regime != diagnosis.conclusion.regime, pair[1].name in last, -pair[1].cost_share)
    )
    by_advice: dict[int, tuple[AnyVerdict, AnyCause]] = {}
    for verdict, cause in named:
        by_advice.setdefault(id(texts.advice(verdict.regime, cause.name)), (verdict, cause))
    return list(by_advice.values())


class DiagnosisWriter(Record, frozen=True):
    """Builds the parts of a report that depend on the verdicts."""

    diagnosis: Diagnosis
    texts: SourceTexts
    context: Context
    prediction: Prediction | NotPredicted | None
    places: Places

    def verdict(self, report: pb.Report, latest_phase_only: bool) -> pb.Verdict:
        """Returns the verdict of `report`, which must already have its findings and its plan. If `latest_phase_only` is
        True, the report is only about the last phase of the run."""
        conclusion = self.diagnosis.conclusion
        confidence = stated_confidence(self.diagnosis.confidence, conclusion.regime, report.findings, report.plan)
        severity = stated_severity(conclusion, confidence, report.findings, report.plan)
        headline = self.texts.headline(conclusion, self.diagnosis.verdicts, self.context)
        first = next(iter(causes_by_cost(self.diagnosis, self.texts)), None)
        if first is not None and first[0].regime == conclusion.regime in AVOIDABLE_REGIMES:
            headline += most_of_it(self.places, conclusion.regime, first[1].name)
        if latest_phase_only:
            headline = self.texts.latest_phase(headline, self.context.window.end - self.context.window.begin)
        return pb.Verdict(
            regime=conclusion.regime,
            share=conclusion.share,
            severity=severity,
            confidence=confidence,
            headline=headline,
            title=self.texts.title(conclusion.regime, conclusion.severity),
            situation=self.diagnosis.situation or None,
        )

    def regime_verdict(self, verdict: AnyVerdict) -> pb.RegimeVerdict:
        """Returns the judgement of one regime, with its reason."""
        judgement = verdict.judgement
        if judgement.status == BROKEN:
            because = self.texts.rule_failed
        else:
            values = self.context.values(judgement.share) | self.texts.because_values(verdict)
            because = self.texts.because(verdict).safe_substitute(values).strip()
        return pb.RegimeVerdict(
            regime=verdict.regime,
            status=judgement.status,
            share=judgement.share,
            because=because,
            title=self.texts.label(verdict.regime),
        )

    def finding(self, verdict: AnyVerdict, cause: AnyCause) -> pb.Finding:
        """Returns the finding of a cause: its cost, gain, evidence, fix, and places in the program."""
        advice = self.texts.advice(verdict.regime, cause.name)
        program = self.context.program_file
        code = for_program(fitted_code(advice.code, figures(verdict.facts) | self.context.code_values), program)
        trial = trial_of(cause.name, code)
        return pb.Finding(
            cause=cause.name,
            regime=verdict.regime,
            cost_share=cause.cost_share,
            speedup=stated_gain(verdict, cause, self.prediction, self.context.device_kind == "cpu"),
            evidence=list(self._evidence(verdict, cause)),
            fix=pb.Fix(
                summary=self.context.said(advice.summary),
                code=code,
                confirm=self.context.said(advice.confirm),
                action=action_of(cause.name, advice),
                documentation=guide_of(cause.name),
                trial=trial or None,
                command=for_program(f"tb-bottleneck try {trial} -- python {ANY_PROGRAM}", program) if trial else None,
            ),
            title=self.context.said(advice.title),
            where=place_rows(self.places, verdict.regime, cause.name),
        )

    def _evidence(self, verdict: AnyVerdict, cause: AnyCause) -> Iterator[pb.Evidence]:
        """Yields the lines of evidence for `cause`. Optional lines whose measure is missing are left out."""
        for line in self.texts.evidence_lines(verdict.regime, cause):
            fact = verdict.facts[line.measure]
            if not (line.optional and isinstance(fact, Missing)):
                label = self.context.said(Template(line.label).safe_substitute(each=self.context.each))
                recorded = line.compared_with_context if getattr(fact, "source", "") == "context" else ""
                compared_with = self.context.said(recorded or line.compared_with)
                yield _evidence_row(pb.Evidence(label=label, compared_with=compared_with), fact)


def _evidence_row(row: pb.Evidence, fact: Measure | Missing) -> pb.Evidence:
    if isinstance(fact, Missing):
        row.unit, row.text, row.compared_with = "text", f"not known: {fact.because}", ""
    elif fact.unit == "text":
        row.unit, row.text = "text", fact.text
    elif math.isfinite(fact.value):
        row.unit, row.value = fact.unit, fact.value
    if isinstance(fact, Measure) and fact.begin is not None and fact.end is not None:
        row.begin_ns, row.end_ns = float(fact.begin), float(fact.end)
    return row
