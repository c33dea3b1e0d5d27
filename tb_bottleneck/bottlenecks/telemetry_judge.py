"""Applies the rules for telemetry, in the order of the account."""

from collections.abc import Mapping

from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.bottlenecks import judge, registry
from tb_bottleneck.bottlenecks.drift.telemetry_rule import with_drift
from tb_bottleneck.bottlenecks.judge import Conclusion
from tb_bottleneck.bottlenecks.rule_types import Rule, Verdict
from tb_bottleneck.bottlenecks.unseen import UNSEEN
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.telemetry import TelemetryRecording

_BY_REGIME: Mapping[str, Rule[TelemetryRecording]] = {**UNSEEN, **registry.rules("telemetry_rule")}
RULES: tuple[Rule[TelemetryRecording], ...] = tuple(_BY_REGIME[regime] for regime in REGIMES)
"""One rule per regime, in the order of the account."""


def judge_all(measures: Measures[TelemetryRecording]) -> tuple[Verdict[TelemetryRecording], ...]:
    """Returns one verdict per rule of RULES. Steps that become longer and longer are added as a cause (see
    drift.py)."""
    return with_drift(tuple(judge.apply_rule(rule, measures) for rule in RULES), measures)


def conclusion_of(verdicts: tuple[Verdict[TelemetryRecording], ...]) -> Conclusion:
    """Returns the conclusion as for traces (`conclusion_of` in bottlenecks/judge.py), with three differences.

    Causes of the machine do not count if the program itself has a cause of comparable cost. If the severity is not
    `none`, the share is at least the highest recoverable share of a verdict, since a cause that slows the device's work
    (heat, too few cores) can cost more than its regime. If the severity is `none` and `unexplained` owns more time than
    the chosen regime, the regime is `unexplained`.
    """
    if judge.program_leads(verdicts):
        verdicts = tuple(map(judge.without_machine, verdicts))
    conclusion = judge.conclusion_of(verdicts)
    if conclusion.severity != "none":
        recoverable = max(verdict.judgement.recoverable for verdict in verdicts)
        return Conclusion(conclusion.regime, max(conclusion.share, recoverable), conclusion.severity)
    unexplained_time = next(verdict for verdict in verdicts if verdict.regime == Regime.UNEXPLAINED)
    if unexplained_time.judgement.share > conclusion.share:
        return Conclusion(unexplained_time.regime, unexplained_time.judgement.share, "none")
    return conclusion
