"""Formats the verdict of a report as plain text, and the judgements of the regimes.

The verdict says what to change first, the cause, the severity and its reason.
"""

from collections.abc import Iterator

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.base.units import share_text
from tb_bottleneck.bottlenecks.plan import WORTH_DOING
from tb_bottleneck.bottlenecks.registry import scenarios
from tb_bottleneck.report.figure_text import factor_text
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text.document import Line, wrapped

_SEVERITIES = {"critical": ("Critical", "a fifth"), "warning": ("Worth fixing", "a tenth")}
_SMALL = "Minor: less than a tenth of the time can be saved"
_NOT_KNOWN = (
    "It is not known what would save time",
    "The recording does not show whether a tenth of the time can be saved",
)
_LEAST = {"critical": 0.2, "warning": 0.1}  # smallest share of the time that can be saved
_LARGE = 0.1  # share of a regime that is not called clear, although it has no known problem
_NOTABLE = 1 / (1 - _LEAST["warning"])


def verdict_lines(report: pb.Report) -> Iterator[str]:
    """Yields the lines of the verdict. If a memory problem is more urgent, its lines come first."""
    verdict = report.verdict
    yield from alert_before(verdict)
    if verdict.action:
        yield Line(verdict.action, "strong")
        yield from filter(None, (verdict.action_cause, verdict.headline))
    else:
        yield Line(verdict.headline, "strong")
    severity = _severity(report)
    about = "; the verdict itself has " if severity in _NOT_KNOWN else ", "
    yield Line(f"{severity}{about}{verdict.confidence} confidence.{_why(report)}", verdict.severity)
    yield from alert_after(verdict)
    yield from wrapped(verdict.situation)


def alert_before(verdict: pb.Verdict) -> Iterator[str]:
    """Yields lines about a memory problem more urgent than the verdict, and a line that introduces the verdict."""
    if verdict.memory_alert.leads:
        yield from (*_alert(verdict.memory_alert, "strong"), "", "About the time:")


def alert_after(verdict: pb.Verdict) -> Iterator[str]:
    """Yields lines about a memory problem that is less urgent than the verdict; nothing without such a problem."""
    if verdict.HasField("memory_alert") and not verdict.memory_alert.leads:
        yield from _alert(verdict.memory_alert)


def _alert(alert: pb.MemoryAlert, style: str = "") -> Iterator[str]:
    yield Line(alert.headline, style)
    yield Line(f"{_SEVERITIES[alert.severity][0]}, about the memory.", alert.severity)


def _severity(report: pb.Report) -> str:
    verdict = report.verdict
    if verdict.severity == "none":
        if verdict.regime == Regime.UNEXPLAINED:
            return _NOT_KNOWN[0]
        smaller = any(finding.regime != verdict.regime for finding in report.findings)
        only_telemetry = report.witness == "telemetry" and not report.others
        sentence = "Telemetry sees nothing that would" if only_telemetry else "Nothing would"
        return f"{sentence} save a tenth of the time" + (", smaller findings below" if smaller else "")
    if verdict.regime == Regime.GPU_UNUSED:
        return "Critical: the device does none of the work"
    gains = [finding.speedup for finding in report.findings if finding.regime == verdict.regime]
    if verdict.severity == "info":
        small = bool(report.plan) or all(gain.basis == "replay" or 1 < gain.high < _NOTABLE for gain in gains)
        return _SMALL if gains and small else _NOT_KNOWN[1]
    word, part = _SEVERITIES.get(verdict.severity, (verdict.severity, ""))
    if report.plan or any(gain.basis == "replay" for gain in gains):
        alone = max((gain.expected for gain in gains if gain.basis == "replay"), default=1.0)
        first = max(alone, report.plan[0].speedup_total if report.plan else 1.0)
        together = " by all changes together" if 1 - 1 / max(first, 1.0) < _LEAST.get(verdict.severity, 0.0) else ""
        return f"{word}: {part} of the time or more can be saved{together}"
    if any(gain.basis == "estimate" for gain in gains):
        return f"{word}: {part} of the time or more can probably be saved"
    most = 1 - 1 / max([1.0, *(gain.high for gain in gains)])
    return f"{word}: at most {share_text(most)} of the time can be saved"


def _why(report: pb.Report) -> str:
    """Returns the reason that the rule of the verdict's regime gives, without its first sentence, which repeats the
    headline."""
    verdict = next((verdict for verdict in report.regimes if verdict.regime == report.verdict.regime), None)
    more = verdict.because.partition(". ")[2] if verdict is not None else ""
    return f" {more}" if more else ""


def checked_lines(report: pb.Report) -> Iterator[str]:
    """Yields what was found besides the verdict, what could not be judged and why, and what is clear.

    Without these lines, readers would assume that every regime that is not mentioned is clear (has no problem).
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
    clear = [verdict for verdict in judged if verdict.status == "clear"]
    large = [f"{verdict.title} ({share_text(verdict.share)})" for verdict in clear if verdict.share >= _LARGE]
    if large:
        yield f"  - No known problem: {', '.join(large)}."
    if len(clear) > len(large):
        yield f"  - Clear: {', '.join(verdict.title for verdict in clear if verdict.share < _LARGE)}."


def _needs_device(verdict: pb.RegimeVerdict) -> bool:
    """Returns True if runs on the CPU cannot have this regime. Returns False if the regime has a problem ("fires"), so
    that it is shown nevertheless."""
    return verdict.status != "fires" and any(regime.needs_device for regime in Regime if regime == verdict.regime)


# A fix depends on another one if, after the other fix, it saves at least this many times as much as alone.
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
    """Returns the position of the finding's fix in the plan; None if the plan does not have it. Several causes may have
    the same fix."""
    fix = _fix(finding.cause)
    return next((place for place, step in enumerate(report.plan) if _fix(step.cause) == fix), None)


def _fix(cause: str) -> str:
    scenario = scenarios().get(cause)
    return cause if scenario is None else scenario.name
