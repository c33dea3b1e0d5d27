"""The bench for telemetry: the same regimes in the same order, each judged alone."""

from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.regime import Regime
from tb_bottleneck.regimes import judge
from tb_bottleneck.regimes.judge import Answer
from tb_bottleneck.regimes.rule import Rule, Verdict
from tb_bottleneck.regimes.telemetry import (
    allocator,
    communication,
    compute,
    host,
    input,
    interruption,
    launch,
    memory_underfilled,
    sync,
    transfer,
    unexplained,
)

RULES: tuple[Rule, ...] = (
    input.RULE,
    transfer.RULE,
    sync.RULE,
    launch.RULE,
    host.RULE,
    allocator.RULE,
    interruption.RULE,
    communication.RULE,
    memory_underfilled.MEMORY,
    compute.RULE,
    memory_underfilled.UNDERFILLED,
    unexplained.RULE,
)


def judge_all(measures: Measures) -> tuple[Verdict, ...]:
    """One verdict per rule."""
    return tuple(judge.judged(rule, measures) for rule in RULES)


def answer_of(verdicts: tuple[Verdict, ...]) -> Answer:
    """As for traces; but where the bound of the device's work is not known, that is the answer, not a guess.

    What slows such work (heat, too few cores) has a cost that can be told though the work's regime cannot: then that is
    the share.
    """
    answer = judge.answer_of(verdicts)
    if answer.severity != "none":
        recoverable = max(verdict.judgement.recoverable for verdict in verdicts)
        return Answer(answer.regime, max(answer.share, recoverable), answer.severity)
    unknown = next(verdict for verdict in verdicts if verdict.regime == Regime.UNEXPLAINED)
    if unknown.judgement.share > answer.share:
        return Answer(unknown.regime, unknown.judgement.share, "none")
    return answer
