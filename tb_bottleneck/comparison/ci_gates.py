"""Budgets that a run is held to, for gates that let nobody through who spends more."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tb_bottleneck.comparison.significance import MIN_COMPARED_STEPS
from tb_bottleneck.regime import REGIMES, Regime
from tb_bottleneck.schema import bottleneck_pb2, comparison_pb2
from tb_bottleneck.units import duration_text, share_text

_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*(%?)")
WHOLE_RUN = Regime.GPU_UNUSED


@dataclass(frozen=True)
class Budget:
    """The share of the step that a regime may own at most."""

    regime: str
    share: float


def share_of(text: str) -> float:
    """The share that "0.05" or "5%" spells, 0 to 1. Raises ValueError."""
    found = _SHARE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no share: write 0.05 or 5%")
    share = float(found[1]) / (100 if found[2] else 1)
    if share > 1:
        raise ValueError(f"{text!r} is more than the whole: write 0.05 or 5%")
    return share


def budget_of(text: str) -> Budget:
    """The budget that "input=0.10" spells. Raises ValueError."""
    regime, _, share = text.partition("=")
    if regime not in (*REGIMES, WHOLE_RUN):
        raise ValueError(f"{regime!r} is no regime; these are: {', '.join((*REGIMES, WHOLE_RUN))}")
    return Budget(regime, share_of(share))


def budget_violations(reports: Iterable[bottleneck_pb2.Report], budgets: Iterable[Budget]) -> list[str]:
    """One sentence for each budget that a report does not keep, and for each report that cannot be held to any."""
    asked, judged = list(budgets), list(reports)
    if asked and not judged:
        return ["no budget can be checked: no recording was found"]
    said = []
    for report in judged:
        name = f"{report.run}/{report.source}" if report.run not in ("", ".") else report.source
        if asked and not report.HasField("verdict"):
            said.append(f"{name}: no budget can be checked, the recording is {report.health.status}")
            continue
        for budget in asked:
            share = _share(report, budget.regime)
            if share > budget.share:
                most = share_text(budget.share)
                said.append(f"{name}: {budget.regime} owns {share_text(share)} of the time, more than {most}")
    return said


def slowdown_violation(told: comparison_pb2.Comparison, most: float) -> str | None:
    """The sentence that says that B is slower than A by more than the share `most` and beyond the noise; else None.

    Where nothing can be compared, or one step alone does not tell, that is said too: a gate that cannot see does not
    open.
    """
    if not told.comparable:
        return told.headline
    growth = told.b_ns / told.a_ns - 1
    if growth > most and min(told.a_steps, told.b_steps) < MIN_COMPARED_STEPS:
        return f"whether B is slower than A cannot be told. {told.test}"
    if growth <= most or not told.significant:
        return None
    times = f"{duration_text(told.b_ns)} instead of {duration_text(told.a_ns)} per {told.per}"
    return f"B is {share_text(growth)} slower than A, more than {share_text(most)}: {times}. {told.test}"


def _share(report: bottleneck_pb2.Report, regime: str) -> float:
    if regime == WHOLE_RUN:
        return float(report.verdict.share) if report.verdict.regime == WHOLE_RUN else 0.0
    return float(next((row.share for row in report.account if row.regime == regime), 0.0))
