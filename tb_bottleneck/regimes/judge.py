"""The bench: every rule, in the order of the account; each judges alone, and a broken one spoils no other."""

import logging
from dataclasses import dataclass

from tb_bottleneck.measure import Measure
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.trace.kernels import unknown_kernels
from tb_bottleneck.regime import DEVICE_REGIMES
from tb_bottleneck.regimes import (
    allocator,
    communication,
    compute,
    host,
    input,
    interruption,
    launch,
    memory,
    sync,
    transfer,
    underfilled,
    unexplained,
)
from tb_bottleneck.regimes.rule import BROKEN, Judgement, Rule, Verdict

RULES: tuple[Rule, ...] = (
    input.RULE,
    transfer.RULE,
    sync.RULE,
    launch.RULE,
    host.RULE,
    allocator.RULE,
    interruption.RULE,
    communication.RULE,
    memory.RULE,
    compute.RULE,
    underfilled.RULE,
    unexplained.RULE,
)

# A regime whose cure could give back less than this does not name the run: the device's own work does.
# traceml warns from 10 % of the step on (diagnostics/step_time/policy.py).
WORTH_RECOVERING = 0.10
CRITICAL, WARNING = 0.20, 0.10

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """The one answer of a recording: the regime, the share it owns, and how much it matters."""

    regime: str
    share: float
    severity: str


def judge_all(measures: Measures) -> tuple[Verdict, ...]:
    """One verdict per rule."""
    return tuple(judged(rule, measures) for rule in RULES)


def answer_of(verdicts: tuple[Verdict, ...]) -> Answer:
    """The regime with the most to recover; where nothing is worth it, the device regime that bounds the run.

    Where kernels that nobody knows run for longer than all device regimes own, naming one of them would be a guess.
    """
    dearest = max(verdicts, key=lambda verdict: verdict.judgement.recoverable)
    recoverable = dearest.judgement.recoverable
    if recoverable >= WORTH_RECOVERING:
        severity = "critical" if recoverable >= CRITICAL else "warning"
        return Answer(dearest.regime, dearest.judgement.share, severity)
    bounds = [verdict for verdict in verdicts if verdict.regime in DEVICE_REGIMES]
    bound = max(bounds, key=lambda verdict: verdict.judgement.share)
    known = sum(verdict.judgement.share for verdict in bounds)
    for verdict in verdicts:
        unknown = verdict.facts.get(unknown_kernels.__name__)
        if isinstance(unknown, Measure) and unknown.value > known:
            bound = verdict
    return Answer(bound.regime, bound.judgement.share, "none")


def judged(rule: Rule, measures: Measures) -> Verdict:
    """What the rule says, with the measures it rests on; never raises."""
    try:
        judgement = rule.judge(measures)
        wanted = [*judgement.evidence, *(measure for cause in judgement.causes for measure in cause.evidence)]
        return Verdict(rule.regime, judgement, {measure.__name__: measures(measure) for measure in wanted})
    except Exception:  # a rule that breaks is shown as broken, and the others still judge
        _log.exception("the rule for %s broke", rule.regime)
        return Verdict(rule.regime, Judgement(BROKEN, measures.account.share(rule.regime)))
