"""Builds the sentence with the first change and its gain, which is the first line of every form of a report."""

from tb_bottleneck.base.units import share_text
from tb_bottleneck.bottlenecks.registry import scenarios
from tb_bottleneck.bottlenecks.texts import CauseAdvice, assumptions
from tb_bottleneck.report.digest import leading_finding, plan_leads
from tb_bottleneck.report.figure_text import VAGUE
from tb_bottleneck.schema import bottleneck_pb2 as pb

# From this width (high - low) of an interval on, factors have one decimal place, because the second one is not known.
WIDE = 0.15
_PARTS = {"optimizer_alone": "the optimizer step", "one_operator": "this operator"}
"""Maps the code of a health reason to the only part of the training that such a recording contains."""
_TIMES = "\N{MULTIPLICATION SIGN}"


def action_of(cause: str, advice: CauseAdvice) -> str:
    """Returns in a few words the change that removes `cause`, from its advice or from the scenario that simulates the
    fix; empty if neither names a change."""
    scenario = scenarios().get(cause)
    return advice.action or (assumptions()[scenario.name].title if scenario is not None else "")


def action_sentence(report: pb.Report) -> str:
    """Returns the first fix with its gain as a sentence. The fix is the first one of the plan (the simulated fixes in
    order) or, if the plan does not lead, that of the leading finding (see plan_leads).

    Returns an empty text if nothing is worth changing, or no gain is known."""
    if report.verdict.severity == "none":
        return ""
    if plan_leads(report):
        first = report.plan[0]
        return f"{first.title}: {_simulated(first.speedup_total, first.low, first.high)}"
    leading = leading_finding(report)
    return with_gain(leading.fix.action, leading.speedup) if leading is not None else ""


def ordered_findings(report: pb.Report) -> list[pb.Finding]:
    """Returns the findings of `report`: first the one that the action is about, then those of the plan in the plan's
    order, then the others."""
    leading = None if plan_leads(report) else leading_finding(report)
    first = [leading.cause] if leading is not None else []
    causes = dict.fromkeys([*first, *(step.cause for step in report.plan)])
    places = {cause: place for place, cause in enumerate(causes)}
    return sorted(report.findings, key=lambda finding: places.get(finding.cause, len(places)))


def verdict_action(report: pb.Report) -> pb.Verdict:
    """Returns a verdict with only the action of `report`, whose findings are in their final order. It also has
    `action_cause` if the action is the first fix of the plan and removes a cause of another regime (kind of time) than
    that of the verdict."""
    part = next((_PARTS[reason.code] for reason in report.health.reasons if reason.code in _PARTS), "")
    action = action_sentence(report)
    said = pb.Verdict(action=f"{action}, of {part} alone" if action and part else action)
    first = next(iter(report.findings), None)
    if action and first is not None and plan_leads(report) and first.regime != report.verdict.regime:
        said.action_cause = f"{first.title}: {share_text(first.cost_share)} of the time."
    return said


def led_by_action(report: pb.Report) -> pb.Report:
    """Returns a copy of `report` with its findings in order, and with the action that follows from them."""
    result = pb.Report()
    result.CopyFrom(report)
    del result.findings[:]
    result.findings.extend(ordered_findings(report))
    for name in ("action", "action_cause"):
        result.verdict.ClearField(name)
    result.verdict.MergeFrom(verdict_action(result))
    return result


def with_gain(action: str, gain: pb.Speedup) -> str:
    """Returns an action with its gain, such as "Load data in workers: at most 1.4 times faster"."""
    return f"{action}: {_of_basis(gain)}"


def _of_basis(gain: pb.Speedup) -> str:
    if gain.basis == "replay":
        simulated = _simulated(gain.expected, gain.low, gain.high)
        return f"{simulated}, {gain.unless}" if gain.unless else simulated
    if gain.basis == "trial":
        measured = _simulated(gain.expected, gain.low, gain.high).removeprefix("about ")
        predicted = f", predicted {_times(gain.predicted, 1)}{_TIMES}" if gain.HasField("predicted") else ""
        return f"measured {measured}{predicted}"
    if gain.basis == "estimate" and gain.high > VAGUE * gain.low:
        return f"{_times(gain.low, 1)}{_TIMES} faster or more (measure it)"
    if gain.basis == "estimate":
        return f"roughly {_times(gain.expected, 1)}{_TIMES} faster ({_times(gain.low, 1)}{_TIMES} or more)"
    most = f"{_times(gain.high, 1)}{_TIMES} faster"
    if _times(gain.high, 1) != _times(gain.expected, 1):
        alone = f"{_times(gain.expected, 1)}{_TIMES} faster {gain.unless or 'if nothing else becomes faster'}"
        return f"{alone}, at most {_times(gain.high, 1)}{_TIMES}"
    return f"up to {most}, {gain.unless}" if gain.unless else f"at most {most}"


def _simulated(expected: float, low: float, high: float) -> str:
    if high > VAGUE * low:
        range_text = f"{_times(low, 1)} to {_times(high, 1)}{_TIMES}"
        return f"{range_text} faster (measure it)"
    digits = 1 if high - low >= WIDE else 2
    return f"about {_times(expected, digits)}{_TIMES} faster ({_times(low, digits)} to {_times(high, digits)})"


def _times(factor: float, digits: int) -> str:
    """Returns a speed-up factor as text, with `digits` decimal places below 9.95, and none from 9.95 on: "1.7",
    "15"."""
    return f"{factor:.{0 if factor >= 9.95 else digits}f}"
