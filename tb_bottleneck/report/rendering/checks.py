"""Formats the judgements of the regimes, and notes on fixes that interact."""

from collections.abc import Iterator

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.base.text import share_text
from tb_bottleneck.replay.plan import WORTH_DOING
from tb_bottleneck.replay.scenarios.registry import SCENARIO_OF
from tb_bottleneck.report.rendering.figures import factor_text
from tb_bottleneck.schema import bottleneck_pb2 as pb


def lines_of(report: pb.Report) -> Iterator[str]:
    """Yields what was found besides the verdict, what could not be judged and why, and what is clear.

    Without these lines, silence would read as a clear verdict.
    """
    judged = [verdict for verdict in report.regimes if not (report.device.kind == "cpu" and _needs_device(verdict))]
    for verdict in judged:
        if verdict.status == "fires" and verdict.regime != report.verdict.regime:
            yield f"  - {verdict.title}, {share_text(verdict.share)}: {verdict.because}"
    for verdict in judged:
        if verdict.status in ("abstains", "broken"):
            yield f"  - {verdict.title}: {verdict.because}"
    for part in report.broken_parts:
        yield f"  - {part.because}"
    clear = [verdict.title for verdict in judged if verdict.status == "clear"]
    if clear:
        yield f"  - Clear: {', '.join(clear)}."


def _needs_device(verdict: pb.RegimeVerdict) -> bool:
    """Returns True for the regimes that no run on the CPU has; one that fires all the same is shown."""
    return verdict.status != "fires" and any(regime.needs_device for regime in Regime if regime == verdict.regime)


# A fix depends on another one if it saves at least this many times as much after it.
DEPENDENT_GAIN = 2.0


def note_of(report: pb.Report, finding: pb.Finding) -> str:
    """Returns a sentence on how the gain of a finding's fix depends on the fixes of the plan; "" if it does not.

    A fix may gain little before another fix is made, or save the same time as another fix.
    """
    if finding.speedup.basis != "replay" or not report.plan:
        return ""
    place = _place(report, finding)
    alone = finding.speedup.expected
    if place is None:
        if alone < 1 + WORTH_DOING:
            return ""
        return f'"{report.plan[0].title}" saves this time as well: after that, this fix gains nothing more.'
    if place == 0:
        return ""
    before, after = report.plan[place - 1], report.plan[place]
    saved = 1 / before.speedup_total - 1 / after.speedup_total  # share of the current step
    if saved < DEPENDENT_GAIN * (1 - 1 / alone):
        return ""
    gain = factor_text(after.speedup_total / before.speedup_total)
    return f'Alone this gains little, because other causes delay the device. After "{before.title}" it gains {gain}.'


def _place(report: pb.Report, finding: pb.Finding) -> int | None:
    """Returns the position in the plan of the fix of a finding; several causes may have the same fix."""
    fix = _fix(finding.cause)
    return next((place for place, step in enumerate(report.plan) if _fix(step.cause) == fix), None)


def _fix(cause: str) -> str:
    scenario = SCENARIO_OF.get(cause)
    return cause if scenario is None else scenario.name
