"""The bench for telemetry: the same regimes in the same order, each judged alone."""

from tb_bottleneck.measures.measures import Measures
from tb_bottleneck.regimes import bench
from tb_bottleneck.regimes.bench import Answer
from tb_bottleneck.regimes.rule import Rule, Verdict
from tb_bottleneck.regimes.telemetry import (
    allocator,
    communication,
    compute,
    device,
    host,
    input,
    interruption,
    launch,
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
    device.MEMORY,
    compute.RULE,
    device.UNDERFILLED,
    unexplained.RULE,
)


def judge_all(measures: Measures) -> tuple[Verdict, ...]:
    """One verdict per rule."""
    return tuple(bench.judged(rule, measures) for rule in RULES)


def answer_of(verdicts: tuple[Verdict, ...]) -> Answer:
    """As for traces; but where the bound of the device's work is not known, that is the answer, not a guess.

    What slows such work (heat, too few cores) has a cost that can be told though the work's regime cannot: then that is
    the share.
    """
    answer = bench.answer_of(verdicts)
    if answer.severity != "none":
        recoverable = max(verdict.judgement.recoverable for verdict in verdicts)
        return Answer(answer.regime, max(answer.share, recoverable), answer.severity)
    unknown = next(verdict for verdict in verdicts if verdict.regime == "unexplained")
    if unknown.judgement.share > answer.share:
        return Answer(unknown.regime, unknown.judgement.share, "none")
    return answer
