"""The inputs of a report that come from telemetry: texts, origin, window, confidence and situation."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from string import Template

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.base.regime import DEVICE_REGIMES, Regime
from tb_bottleneck.base.units import NS_PER_S, share_text
from tb_bottleneck.bottlenecks.judge import Conclusion
from tb_bottleneck.bottlenecks.recoverable import UNSEEN, UnknownTime, recoverable_by_window
from tb_bottleneck.bottlenecks.rule_types import ABSTAINS, FIRES, AnyCause, AnyVerdict
from tb_bottleneck.bottlenecks.telemetry_judge import RULES
from tb_bottleneck.bottlenecks.texts import CauseAdvice, EvidenceLine, regime_advice, telemetry_advice
from tb_bottleneck.quality.trace_defects import Defect
from tb_bottleneck.report.builders.evidence_source_texts import Context, figures
from tb_bottleneck.report.builders.gains import LARGE_UNEXPLAINED_SHARE
from tb_bottleneck.report.builders.recording_description import (
    MAX_DEVICE_NAME,
    WINDOWS,
    Floats,
    Ints,
    Origin,
    ReportedDevice,
    Window,
    longest_of_neighbours,
    spread_of,
    text_fact,
)

_FIRES_AT = {rule.regime: rule.fires_at for rule in RULES}
FOR_CODE = frozenset({"storage_advice", "threads_beside_others", "threads_to_use", "workers_beside_main"})
"""Measures that only the advised code uses; they are not shown as evidence."""
_OWN_WORK = (Regime.MEMORY, Regime.COMPUTE)
LEAST_PART = 0.01
"""Parts of the unexplained time with a smaller share are not named. A choice."""
_MINUTE, _HOUR = 60, 3600


@dataclass(frozen=True)
class TelemetryTexts:
    """Implements SourceTexts for telemetry. `unknown` has the parts of the unexplained time."""

    unknown: UnknownTime = field(default_factory=UnknownTime)

    @property
    def rule_failed(self) -> str:
        """The sentence about a rule that raised an error."""
        return "This rule failed. This is an error in tb_bottleneck; the other rules are not affected."

    def label(self, regime: Regime) -> str:
        """Returns the label of the regime. The label of `unexplained` depends on the largest part of this time."""
        title = telemetry_advice().unknown_titles.get(self.unknown.largest)
        return title if regime is Regime.UNEXPLAINED and title is not None else regime.label

    def meaning(self, regime: Regime, device: str) -> str:
        """Returns sentences that say what the time of a regime is; for `unexplained`, each part with its share."""
        if regime is Regime.HOST and device == "CPU":
            return telemetry_advice().outside["on_cpu"]
        texts = telemetry_advice().unknown
        parts = {name: share for name, share in self.unknown.parts.items() if share >= LEAST_PART}
        if regime is not Regime.UNEXPLAINED or not parts:
            return regime_advice(regime).meaning
        told = {name: texts[name].safe_substitute(device=device) for name in parts}
        if len(told) == 1:
            return next(iter(told.values()))
        return " ".join(f"{share_text(parts[name])}: {text}" for name, text in told.items())

    def title(self, regime: Regime, severity: str) -> str:
        """Returns the label of the regime in a verdict of this severity.

        If the regime is `compute` and has a problem, the label says that the device is slowed down, by heat or by other
        threads.
        """
        if regime is Regime.COMPUTE and severity != "none":
            return telemetry_advice().phase["held"].safe_substitute(title=regime.label)
        return self.label(regime) if severity == "none" else regime.label

    def headline(self, conclusion: Conclusion, verdicts: Sequence[AnyVerdict], context: Context) -> str:
        """Returns the headline of the report: the headline of the costliest cause in the conclusion's regime or, if
        this cause has no headline, that of the regime."""
        advice, regime = telemetry_advice(), conclusion.regime
        if (regime, conclusion.severity) == (Regime.UNEXPLAINED, "none") and self.unknown.largest == UNSEEN:
            return advice.headline["unknown"].safe_substitute(context.values(conclusion.share))
        verdict = next(verdict for verdict in verdicts if verdict.regime == regime)
        by_cost = sorted(verdict.judgement.causes, key=lambda cause: (not cause.certain, -cause.cost_share))
        causes = by_cost if conclusion.severity != "none" else []
        own = advice.causes[causes[0].name].headline if causes else None
        template = own or advice.headline.get(regime) or regime_advice(regime).headline
        share = causes[0].cost_share if own is not None and causes else conclusion.share
        headline = template.safe_substitute(figures(verdict.facts) | context.values(share))
        if conclusion.severity == "none" and regime != Regime.UNEXPLAINED:
            headline += " Telemetry shows no problem that costs more than a tenth of the time."
            if regime in _OWN_WORK:
                headline += " Only a trace shows whether this work can be reduced."
        return headline

    def latest_phase(self, headline: str, length_ns: int) -> str:
        """Returns `headline` together with the length of the last phase, because the report is about that phase
        only."""
        return telemetry_advice().phase["latest"].safe_substitute(time=_length(length_ns), headline=headline)

    def because(self, verdict: AnyVerdict) -> Template:
        """Returns the template of a sentence that says why the regime has its status."""
        judgement, templates = verdict.judgement, telemetry_advice().because
        if judgement.status == ABSTAINS:
            return templates[ABSTAINS]
        if judgement.status == FIRES and judgement.share < _FIRES_AT.get(verdict.regime, 0.0):
            return templates["named"]
        return templates[judgement.status if judgement.share > 0 else "unowned"]

    def because_values(self, verdict: AnyVerdict) -> dict[str, str]:
        """Returns the values for `because`: the threshold of the regime and the missing signal."""
        fires_at = share_text(_FIRES_AT.get(verdict.regime, 0.0))
        return {"fires_at": fires_at, "missing": verdict.judgement.missing}

    def advice(self, regime: Regime, cause: str) -> CauseAdvice:
        """Returns the texts of a cause, which are the same for every regime."""
        return telemetry_advice().causes[cause]

    def evidence_lines(self, regime: Regime, cause: AnyCause) -> Sequence[EvidenceLine]:
        """Returns the lines of evidence for the measures that the rule names for `cause`, in the rule's order."""
        lines = telemetry_advice().lines
        return [lines[measure.__name__] for measure in cause.evidence if measure.__name__ not in FOR_CODE]


def _length(ns: float) -> str:
    """Returns a time as text: whole seconds, from two minutes on minutes, from two hours on hours."""
    seconds = ns / NS_PER_S
    if seconds < 2 * _MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds / _MINUTE:.0f} min" if seconds < 2 * _HOUR else f"{seconds / _HOUR:.0f} h"


# Smallest number of steps for more than low confidence; traceml's minimum (diagnostics/step_time/policy.py).
MIN_TELEMETRY_STEPS = 20
_INT32 = 1 << 31


def telemetry_origin(recording: TelemetryRecording) -> Origin:
    """Returns rank, device and program of a monitored run, from its recorded facts."""
    rank, world_size = recording.fact("rank"), recording.fact("world_size")
    name, kind = recording.facts.get("device_name"), recording.facts.get("device_kind")
    known = kind if kind in ("cuda", "rocm", "cpu", "xpu") else "cuda" if recording.on_device else "cpu"
    kind = "cuda" if recording.on_device and known == "cpu" else known
    return Origin(
        rank=int(rank) if rank is not None and 0 <= rank < _INT32 else None,
        world_size=int(world_size) if world_size is not None and 0 < world_size < _INT32 else None,
        device=ReportedDevice(
            name=name[:MAX_DEVICE_NAME] if isinstance(name, str) and known == kind else "",
            kind=kind,
            count=max(len(recording.telemetry.devices), 1),
        ),
        revision=text_fact(recording.facts, "git_revision"),
        program=text_fact(recording.facts, "program"),
        on_windows=recording.facts.get("os") == WINDOWS,
    )


def telemetry_window(recording: TelemetryRecording) -> Window:
    """Returns the part of a monitored run that the report judges."""
    grid, steps = recording.windows.grid, len(recording.steps)
    _, highest, mean = recording.windows.highest("wall")
    return Window(
        steps=steps,
        basis="step_clock" if steps else "whole",
        begin=int(grid.begin),
        end=int(grid.edges[-1]),
        spread=spread_of(mean, recording.windows.counts_of_steps) if len(mean) else None,
        step_times=longest_of_neighbours(highest) if len(mean) else (),
        mean_error=_mean_error(mean, recording.windows.counts_of_steps),
    )


PARTS = 10
"""Number of equal parts of a run whose means show the error of its mean: the method of batch means (Law, Simulation
Modeling and Analysis, 9.5.3), which holds for steps that depend on each other."""


def _mean_error(times: Floats, counts: Ints) -> float | None:
    """Returns the standard error of the mean step as a share of it; None for fewer than two steps per part. `times` has
    the mean times of groups of `counts` steps in order."""
    if len(times) < 2 * PARTS:
        return None
    parts = np.array_split(np.arange(len(times)), PARTS)
    means = np.array([np.average(times[part], weights=counts[part]) for part in parts])
    return float(means.std(ddof=1) / np.sqrt(PARTS) / means.mean())


def telemetry_confidence(recording: TelemetryRecording, defects: Sequence[Defect], conclusion: Conclusion) -> str:
    """Returns the confidence in the conclusion: "low" or "medium", because telemetry sees steps only from outside.

    The confidence is low with fewer than MIN_TELEMETRY_STEPS steps, with any defect, and with much unexplained time. If
    the conclusion is about the device's own work, it is also low if no counters show the limit of this work."""
    limit_known = conclusion.regime not in DEVICE_REGIMES or recording.bounds.counters
    unexplained = recording.mean(recoverable_by_window(recording)[Regime.UNEXPLAINED], "share", "no window is known")
    in_doubt = isinstance(unexplained, Missing) or unexplained.value > LARGE_UNEXPLAINED_SHARE
    in_doubt = conclusion.regime == Regime.UNEXPLAINED or (in_doubt and conclusion.regime != Regime.GPU_UNUSED)
    enough = len(recording.steps) >= MIN_TELEMETRY_STEPS
    return "medium" if enough and limit_known and not in_doubt and not defects else "low"
