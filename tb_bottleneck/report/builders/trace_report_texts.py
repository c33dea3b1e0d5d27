"""The texts of reports about traces."""

from collections.abc import Mapping, Sequence
from string import Template

from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.base.units import share_text
from tb_bottleneck.bottlenecks.compute.kernel_efficiency import (
    compute_reached,
    memory_reached,
    reachable_peak,
    roofs_known,
    shapes_recorded,
)
from tb_bottleneck.bottlenecks.judge import RULES, Conclusion
from tb_bottleneck.bottlenecks.rule_types import WORTH_RECOVERING, AnyCause, AnyVerdict
from tb_bottleneck.bottlenecks.texts import CauseAdvice, EvidenceLine, regime_advice
from tb_bottleneck.measures.trace.hardware_counters import bandwidth_in_use
from tb_bottleneck.report.builders.evidence_source_texts import Context, figures
from tb_bottleneck.report.builders.gains import KNOWN_FROM_SHAPES

_FIRES_AT = {rule.regime: rule.fires_at for rule in RULES}


class TraceTexts:
    """Implements SourceTexts for traces."""

    rule_failed = "This rule failed. This is an error in tb_bottleneck; the other rules are not affected."

    def label(self, regime: Regime) -> str:
        """Returns the name of `regime`."""
        return regime.label

    def meaning(self, regime: Regime, device: str) -> str:
        """Returns sentences that say what happens in the time of `regime`."""
        return regime_advice(regime).meaning

    def title(self, regime: Regime, severity: str) -> str:
        """Returns the name of `regime`; it does not depend on the severity."""
        return regime.label

    def headline(self, conclusion: Conclusion, verdicts: Sequence[AnyVerdict], context: Context) -> str:
        """Returns the headline of the report: the headline of the costliest cause in the conclusion's regime or, if
        this cause has no headline or lacks a figure of it, that of the regime."""
        regime = conclusion.regime
        advice = regime_advice(regime)
        verdict = next(verdict for verdict in verdicts if verdict.regime == regime)
        costliest = max(verdict.judgement.causes, key=lambda cause: cause.cost_share, default=None)
        own = advice.causes[costliest.name].headline if costliest is not None else None
        values = figures(verdict.facts) | context.values(conclusion.share)
        try:
            headline = (own or advice.headline).substitute(values)
        except KeyError:
            headline = advice.headline.safe_substitute(values)
        if conclusion.severity != "none" or not regime.on_device:
            return headline
        unexplained = next((v.judgement.share for v in verdicts if v.regime == Regime.UNEXPLAINED), 0.0)
        if unexplained >= WORTH_RECOVERING:
            return f"{headline} Nothing recorded explains {share_text(unexplained)} of the time."
        return f"{headline} No problem costs more than a tenth of the time."

    def latest_phase(self, headline: str, length_ns: int) -> str:
        """Returns `headline` unchanged: traces have no phases."""
        return headline

    def because(self, verdict: AnyVerdict) -> Template:
        """Returns the template of a sentence that says why the regime has its status."""
        because = regime_advice(verdict.regime).because
        if verdict.regime == Regime.UNEXPLAINED and verdict.judgement.causes:
            return because["uneven_steps"]
        causes = verdict.judgement.causes
        return because["once" if causes and not any(cause.recurs for cause in causes) else verdict.judgement.status]

    def because_values(self, verdict: AnyVerdict) -> dict[str, str]:
        """Returns the values for `because`: threshold, missing signal, and how the limits of kernels are known."""
        return {
            "fires_at": share_text(_FIRES_AT.get(verdict.regime, 0.0)),
            "missing": verdict.judgement.missing,
            "roofs": _roofs(verdict.facts),
        }

    def advice(self, regime: Regime, cause: str) -> CauseAdvice:
        """Returns the texts of a cause of this regime."""
        return regime_advice(regime).causes[cause]

    def evidence_lines(self, regime: Regime, cause: AnyCause) -> Sequence[EvidenceLine]:
        """Returns the lines of evidence that the texts of the cause list."""
        return self.advice(regime, cause.name).evidence


def _roofs(facts: Mapping[str, Measure | Missing]) -> str:
    """Returns sentences on how the limits of kernels are known, and how close the kernels come to these limits; may be
    empty."""
    known = facts.get(roofs_known.__name__)
    if not isinstance(known, Measure):
        return ""
    if known.value < KNOWN_FROM_SHAPES:
        if isinstance(facts.get(shapes_recorded.__name__), Measure):
            return (
                "The limit is known from kernel names only: the recorded shapes do not give the work of these kernels."
            )
        return "The limit is known from kernel names only; with record_shapes=True it follows from the kernels' work."
    reached = facts.get(compute_reached.__name__) or facts.get(memory_reached.__name__)
    near = f" The kernels reach {share_text(reached.value)} of it" if isinstance(reached, Measure) else ""
    reachable = facts.get(reachable_peak.__name__)
    if near and isinstance(reachable, Measure) and facts.get(compute_reached.__name__) is reached:
        near += f"; matrix units of this device reach {share_text(reachable.value)} of the data sheet at most"
    near += "." if near else ""
    counted = isinstance(facts.get(bandwidth_in_use.__name__), Measure)
    source = "shapes or the device's counters" if counted else "shapes"
    return f"The limit is known from {source} for {share_text(known.value)} of the kernel time.{near}"
