"""CI gates: the limits that a run must not exceed: the share of a regime, and the slowdown of a comparison."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tb_bottleneck.base.errors import did_you_mean
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.base.units import duration_text, share_text
from tb_bottleneck.comparison.significance import MIN_COMPARED_STEPS
from tb_bottleneck.schema import bottleneck_pb2, comparison_pb2

_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*(%?)")
WHOLE_RUN = Regime.GPU_UNUSED


@dataclass(frozen=True)
class Budget:
    """The largest share of the step time (0 to 1) that a regime may take. `regime` is the id of a regime (kind of
    time), such as "input"."""

    regime: str
    share: float


def share_of(text: str) -> float:
    """Parses a share such as "0.05" or "5%" to a number from 0 to 1. Raises ValueError for any other text."""
    match = _SHARE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a share; write 0.05 or 5%")
    share = float(match[1]) / (100 if match[2] else 1)
    if share > 1:
        raise ValueError(f"{text!r} is more than 100 %; write 0.05 or 5%")
    return share


def budget_of(text: str) -> Budget:
    """Parses a budget such as "input=0.10" or "input=10%". Raises ValueError if the regime is unknown or the share is
    invalid."""
    regime, has_share, share = text.partition("=")
    if regime not in (*REGIMES, WHOLE_RUN):
        known = (*REGIMES, WHOLE_RUN)
        hint = did_you_mean(regime, known) or f"; the regimes are: {', '.join(known)}"
        raise ValueError(f"{regime!r} is not a regime{hint}")
    if not has_share:
        raise ValueError(f"how much of the time may {regime} own? Write {regime}=10%")
    return Budget(regime, share_of(share))


def budget_violations(reports: Iterable[bottleneck_pb2.Report], budgets: Iterable[Budget]) -> list[str]:
    """Returns one sentence for each budget that a report exceeds, and for each report that cannot be checked. `budgets`
    are the largest allowed shares of the time."""
    limits, all_reports = list(budgets), list(reports)
    if limits and not all_reports:
        return ["no budget can be checked: no recording was found"]
    violations = []
    for report in all_reports:
        name = f"{report.run}/{report.source}" if report.run not in ("", ".") else report.source
        if limits and not report.HasField("verdict"):
            violations.append(f"{name}: no budget can be checked because the recording is {report.health.status}")
            continue
        for budget in limits:
            share = _share(report, budget.regime)
            if share > budget.share:
                limit = share_text(budget.share)
                violations.append(f"{name}: {budget.regime} owns {share_text(share)} of the time, more than {limit}")
    return violations


def slowdown_violation(comparison: comparison_pb2.Comparison, limit: float) -> str | None:
    """Returns a sentence if B's step takes longer than A's by more than the share `limit` (0.05 means 5 %) and beyond
    the noise, otherwise None.

    A gate that cannot be checked must fail. Therefore, a sentence is also returned if nothing can be compared, if the
    runs do different work, or if B is slower by more than `limit` but the noise is unknown, because a run has a single
    step.
    """
    if not comparison.comparable or (comparison.HasField("similarity") and not comparison.similarity.same_work):
        return comparison.headline
    if comparison.HasField("run"):
        return _run_violation(comparison, limit)
    if comparison.HasField("unprofiled"):
        return _unprofiled_violation(comparison, limit)
    growth = (1 / comparison.mean_speedup if comparison.by_means else comparison.b_ns / comparison.a_ns) - 1
    if growth > limit and min(comparison.a_steps, comparison.b_steps) < MIN_COMPARED_STEPS:
        return f"cannot determine whether B is slower than A. {comparison.test}"
    if growth <= limit or comparison.difference != "slower":
        return None
    if comparison.by_means:
        return f"B is {share_text(growth)} slower than A on average over all steps, more than {share_text(limit)}."
    times = f"{duration_text(comparison.b_ns)} instead of {duration_text(comparison.a_ns)} per {comparison.per}"
    return f"B is {share_text(growth)} slower than A, more than {share_text(limit)}: {times}. {comparison.test}"


def _run_violation(comparison: comparison_pb2.Comparison, limit: float) -> str | None:
    """Returns the sentence of slowdown_violation from the mean steps of the whole runs, or None. `limit` is as in
    slowdown_violation."""
    run = comparison.run
    growth = run.b_ns / run.a_ns - 1
    if growth <= limit or run.difference != "slower":
        return None
    times = f"{duration_text(run.b_ns)} instead of {duration_text(run.a_ns)} per {comparison.per} on average"
    return f"B is {share_text(growth)} slower than A over the whole runs, more than {share_text(limit)}: {times}."


def _unprofiled_violation(comparison: comparison_pb2.Comparison, limit: float) -> str | None:
    """Returns the sentence of slowdown_violation from the steps that both runs measured without a profiler, or None.
    `limit` is as in slowdown_violation.

    These steps are preferred, because the overhead of the profiler is no slowdown of the training.
    """
    measured = comparison.unprofiled
    growth = measured.b_ns / measured.a_ns - 1
    if growth > limit and measured.difference == "unknown":
        return f"cannot determine whether B is slower than A. {measured.test}"
    if growth <= limit or measured.difference != "slower":
        return None
    times = f"{duration_text(measured.b_ns)} instead of {duration_text(measured.a_ns)} per {comparison.per}"
    return f"B is {share_text(growth)} slower than A without the profiler, more than {share_text(limit)}: {times}."


def _share(report: bottleneck_pb2.Report, regime: str) -> float:
    """Returns the share of the step time (0 to 1) that `regime` takes in the report; 0 if the report has no such
    regime."""
    if regime == WHOLE_RUN:
        return float(report.verdict.share) if report.verdict.regime == WHOLE_RUN else 0.0
    return float(next((row.share for row in report.account if row.regime == regime), 0.0))
