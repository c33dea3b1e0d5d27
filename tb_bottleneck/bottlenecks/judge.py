"""Applies the rules for traces, in the order of the account. A rule that fails does not affect the other rules."""

import logging
from dataclasses import replace

from tb_bottleneck.base.measure import Measure, Record
from tb_bottleneck.base.regime import DEVICE_REGIMES, REGIMES, Regime
from tb_bottleneck.bottlenecks import registry
from tb_bottleneck.bottlenecks.compute.kernels import unknown_kernels
from tb_bottleneck.bottlenecks.rule_types import (
    BROKEN,
    COMPARABLE,
    MACHINE_CAUSES,
    WORTH_RECOVERING,
    Judgement,
    Rule,
    Verdict,
)
from tb_bottleneck.measures.measure_set import Measures, Source
from tb_bottleneck.measures.trace import Recording

RULES: tuple[Rule[Recording], ...] = tuple(registry.rules("rule")[regime] for regime in REGIMES)
"""One rule per regime, in the order of the account."""

CRITICAL, WARNING = 0.20, 0.10
"""With at least these shares of recoverable time, the severity of a conclusion is critical or warning."""

_log = logging.getLogger(__name__)


class Conclusion(Record, frozen=True):
    """The conclusion about a run: the regime of the verdict, its share of the time (0 to 1), and the severity.

    `severity` is critical, warning, info or none.
    """

    regime: Regime
    share: float
    severity: str


def judge_all(measures: Measures[Recording]) -> tuple[Verdict[Recording], ...]:
    """Returns one verdict per rule of RULES, in the order of the account. Limits the recoverable shares by the limit of
    the rule, and joins the causes that one fix removes (`also_fixes` of Cause)."""
    verdicts = tuple(_limited(apply_rule(rule, measures), rule, measures) for rule in RULES)
    for wider in [cause for verdict in verdicts for cause in verdict.judgement.causes if cause.also_fixes]:
        verdicts = _joined(verdicts, wider.name, wider.also_fixes)
    return verdicts


def _joined(
    verdicts: tuple[Verdict[Recording], ...], wider: str, narrower: frozenset[str]
) -> tuple[Verdict[Recording], ...]:
    """Returns the verdicts without the causes in `narrower`, and with the costs of these causes added to the cause
    named `wider`, and to the recoverable share of its verdict. Returns the verdicts unchanged if none has a cause named
    `wider`."""
    causes = [cause for verdict in verdicts for cause in verdict.judgement.causes]
    if not any(cause.name == wider for cause in causes):
        return verdicts
    cost = sum(cause.cost_share for cause in causes if cause.name in narrower)

    def joined(verdict: Verdict[Recording]) -> Verdict[Recording]:
        judgement = verdict.judgement
        kept = tuple(
            replace(cause, cost_share=cause.cost_share + cost) if cause.name == wider else cause
            for cause in judgement.causes
            if cause.name not in narrower
        )
        removed = sum(cause.cost_share for cause in judgement.causes if cause.name in narrower)
        added = cost if any(cause.name == wider for cause in kept) else 0.0
        recoverable = max(judgement.recoverable - removed, 0.0) + added
        return replace(verdict, judgement=replace(judgement, causes=kept, recoverable=recoverable))

    return tuple(map(joined, verdicts)) if cost else verdicts


def _limited(verdict: Verdict[Recording], rule: Rule[Recording], measures: Measures[Recording]) -> Verdict[Recording]:
    """Returns the verdict of `rule` with its recoverable share (see Judgement) limited by the rule's limit, if any."""
    judgement, measure = verdict.judgement, rule.limit
    if measure is None:
        return verdict
    most = min(judgement.recoverable, measures.value(measure, otherwise=judgement.recoverable))
    return replace(verdict, judgement=replace(judgement, recoverable=most))


ONE_AFTER_THE_OTHER = (Regime.SYNC, Regime.LAUNCH, Regime.HOST)
"""Regimes of a host that keeps the device waiting. They take turns: after a wait, the host has to launch again."""


def conclusion_of(verdicts: tuple[Verdict[Source], ...]) -> Conclusion:
    """Returns the conclusion: the regime with the most recoverable time (the largest share of the window that a fix can
    save) or, if no regime has enough recoverable time (WORTH_RECOVERING), the device regime with the most time.

    A regime that sets the pace (`input`) precedes regimes with more recoverable time. Until batches come earlier, each
    other fix only makes the wait for batches longer. Against a regime of the device, the regimes of a host that keeps
    it waiting count together.

    If no regime has enough recoverable time, the regime is `unexplained` if unknown kernels run for longer than all
    device regimes together, or if some steps are much longer for no recorded reason. The conclusion can also be a
    regime with a cause that may not occur again or may not be removable, if that regime owns more time than the device
    regime. In this case, and if it is not known whether some costly cause can be removed, the severity is `info`.
    """
    worth = [verdict for verdict in verdicts if _stake(verdict) >= WORTH_RECOVERING]
    pacing = [verdict for verdict in worth if verdict.judgement.sets_pace]
    if worth:
        recoverable = max(verdict.judgement.recoverable for verdict in verdicts)
        severity = "critical" if recoverable >= CRITICAL else "warning" if recoverable >= WARNING else "info"
        host = [verdict for verdict in worth if verdict.regime in ONE_AFTER_THE_OTHER]
        costliest = max(pacing or worth, key=_stake)
        if not pacing and costliest.regime in DEVICE_REGIMES and sum(map(_stake, host)) > _stake(costliest):
            costliest = max(host, key=_stake)
        return Conclusion(costliest.regime, costliest.judgement.share, severity)
    bounds = [verdict for verdict in verdicts if verdict.regime in DEVICE_REGIMES] or list(verdicts)
    bound = max(bounds, key=lambda verdict: verdict.judgement.share)
    owned = sum(verdict.judgement.share for verdict in bounds)
    for verdict in verdicts:
        unknown = verdict.facts.get(unknown_kernels.__name__)
        if isinstance(unknown, Measure) and unknown.value > owned:
            bound = verdict
        if verdict.regime == Regime.UNEXPLAINED and verdict.judgement.causes:
            return Conclusion(verdict.regime, verdict.judgement.causes[0].cost_share, "none")
    unsettled = [verdict for verdict in verdicts if _unsettled(verdict)]
    longest = max([*unsettled, bound], key=lambda verdict: verdict.judgement.share)
    doubted = any(not cause.certain for verdict in unsettled for cause in verdict.judgement.causes)
    severity = "info" if doubted or longest is not bound else "none"
    return Conclusion(longest.regime, longest.judgement.share, severity)


def program_leads(verdicts: tuple[Verdict[Source], ...]) -> bool:
    """Returns True if the verdicts have causes in MACHINE_CAUSES, and also a cause of the program itself that costs at
    least WORTH_RECOVERING, and at least COMPARABLE of the cost of the machine's causes."""
    of_machine = of_program = 0.0
    for cause in (cause for verdict in verdicts for cause in verdict.judgement.causes if cause.recurs):
        if cause.name in MACHINE_CAUSES:
            of_machine = max(of_machine, cause.cost_share)
        elif cause.certain:
            of_program = max(of_program, cause.cost_share)
    return of_machine > 0 and of_program >= max(WORTH_RECOVERING, COMPARABLE * of_machine)


def without_machine(verdict: Verdict[Source]) -> Verdict[Source]:
    """Returns the verdict without the causes in MACHINE_CAUSES. The recoverable share (see Judgement) is limited to the
    highest cost of the remaining causes."""
    causes = tuple(cause for cause in verdict.judgement.causes if cause.name not in MACHINE_CAUSES)
    if len(causes) == len(verdict.judgement.causes):
        return verdict
    recoverable = min(verdict.judgement.recoverable, max((cause.cost_share for cause in causes), default=0.0))
    return replace(verdict, judgement=replace(verdict.judgement, causes=causes, recoverable=recoverable))


def _stake(verdict: Verdict[Source]) -> float:
    """Returns the share of the window that counts when the conclusion is chosen: the recoverable share, plus the share
    that may not occur again (`doubtful` of Judgement)."""
    return verdict.judgement.recoverable + verdict.judgement.doubtful


def _unsettled(verdict: Verdict[Source]) -> bool:
    """Returns True if a cause costs at least WORTH_RECOVERING, but it is not known that a fix saves any of this
    time."""
    causes = verdict.judgement.causes
    return any(not (cause.certain and cause.recurs) and cause.cost_share >= WORTH_RECOVERING for cause in causes)


def apply_rule(rule: Rule[Source], measures: Measures[Source]) -> Verdict[Source]:
    """Returns the verdict of `rule` with the measures of its evidence. Never raises: if the rule fails, the status is
    `broken`, and the error is logged.

    If every cause of the judgement has `recurs` False, the recoverable share is set to 0.
    """
    try:
        judgement = rule.judge(measures)
        if judgement.causes and not any(cause.recurs for cause in judgement.causes):
            judgement = replace(judgement, recoverable=0.0)
        evidence = [*judgement.evidence, *(measure for cause in judgement.causes for measure in cause.evidence)]
        return Verdict(rule.regime, judgement, {measure.__name__: measures(measure) for measure in evidence})
    except Exception:  # a failing rule is shown as broken, and the others still judge
        _log.exception("the rule for %s failed", rule.regime)
        return Verdict(rule.regime, Judgement(BROKEN, measures.account.share(rule.regime)))
