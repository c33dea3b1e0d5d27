"""The gain that a report states for each cause, and the confidence and severity that follow from the evidence.

The predictions of the replay in the report: gains of findings, the plan (fixes in order), and the reason if nothing
is predicted.
"""

from collections.abc import Iterable, Iterator, Sequence

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Measure, Missing, Record
from tb_bottleneck.base.regime import DEVICE_REGIMES, Regime
from tb_bottleneck.base.units import duration_text, share_text
from tb_bottleneck.bottlenecks.compute.kernel_efficiency import roofs_known
from tb_bottleneck.bottlenecks.host.facts import steps_between_pauses
from tb_bottleneck.bottlenecks.interruption.facts import steps_between_interruptions
from tb_bottleneck.bottlenecks.judge import CRITICAL, WARNING, Conclusion
from tb_bottleneck.bottlenecks.plan import Prediction
from tb_bottleneck.bottlenecks.registry import scenarios
from tb_bottleneck.bottlenecks.rule_types import AnyCause, AnyVerdict
from tb_bottleneck.bottlenecks.texts import assumptions, unsimulated, word
from tb_bottleneck.knowledge.measured import estimated_gain
from tb_bottleneck.quality.trace_defects import Defect
from tb_bottleneck.replay.host_scale import HostScale
from tb_bottleneck.replay.simulator import MAX_FROZEN_SHARE, MAX_REPLAY_ERROR, Check
from tb_bottleneck.report.figure_text import VAGUE
from tb_bottleneck.schema import bottleneck_pb2 as pb

UNSURE = ("truncated", "damaged", "processes", "clocks")
"""Reasons for which the recording does not even show a bound of the gains."""


class NotPredicted(Record, frozen=True):
    """Replaces a prediction that could not be made. `because` is a key of the table `words` in scenarios.toml.

    `because` is "broken" if the replay raised an error; or one of UNSURE: "truncated" if parts of the file are missing,
    "damaged" if fewer than two undamaged steps are left, "processes" if the file has operators of several processes,
    "clocks" if an error of the moved clock of the device may change much of the idle time.
    """

    because: str


def simulated_speedup(cause: str, prediction: Prediction) -> pb.Speedup:
    """Returns the simulated gain of fixing a cause.

    Raises:
        KeyError: the cause was not simulated.
    """
    gain = prediction.gains[cause]
    return pb.Speedup(
        expected=gain.expected,
        low=gain.low,
        high=gain.high,
        basis="replay",
        assumes=assumptions()[scenarios()[cause].name].text,
        because=word(f"vague_{gain.main_error}").substitute() if gain.high > VAGUE * gain.low else "",
    )


def plan_rows(prediction: Prediction) -> Iterator[pb.PlanStep]:
    """Yields the fixes of the plan as messages, in order."""
    for step in prediction.plan:
        texts = assumptions()[step.scenario]
        yield pb.PlanStep(
            cause=step.cause,
            step_ns_after=step.step_ns,
            speedup_total=step.total.expected,
            title=texts.title,
            low=step.total.low,
            high=step.total.high,
            assumes=texts.text,
        )


def replay_check(prediction: Prediction | NotPredicted) -> pb.Replay:
    """Returns how well the replay reproduces the recording, as a message. If nothing is predicted, `because` of the
    message says why."""
    if isinstance(prediction, NotPredicted):
        return pb.Replay(because=word(prediction.because).substitute())
    check, scales = prediction.check, prediction.host_scale
    return pb.Replay(
        error=check.error,
        frozen_share=check.frozen_share,
        because=why_not_trusted(check),
        host=_host(scales) if scales is not None and prediction.gains else "",
    )


def why_not_simulated(cause: str, on_cpu: bool) -> str:
    """Returns the reason, as text, why the gain of fixing `cause` was not simulated; empty if no reason is known."""
    scenario = scenarios().get(cause)
    if scenario is None:
        return unsimulated().get(cause, "")
    if on_cpu and not scenario.on_cpu:
        return word("on_device").substitute()
    needs = assumptions()[scenario.name].needs
    return word("needs").substitute(needs=needs) if needs else ""


def why_not_trusted(check: Check) -> str:
    """Returns the reason why nothing is predicted from a recording, as a sentence; empty if its replay is trusted."""
    if check.trusted:
        return ""
    if check.frozen_share > MAX_FROZEN_SHARE:
        return word("frozen").substitute(frozen=share_text(check.frozen_share), limit=share_text(MAX_FROZEN_SHARE))
    return word("error").substitute(error=share_text(check.error), limit=share_text(MAX_REPLAY_ERROR))


def _host(host_scale: HostScale) -> str:
    if host_scale.solved:
        return word("solved").substitute(scale=share_text(host_scale.expected))
    if host_scale.least == host_scale.most:
        return ""
    phases = [f"{name} {duration_text(time)}" for name, time in host_scale.phases.items()]
    return word("paced" if host_scale.pace else "hidden" if host_scale.hidden else "estimated").substitute(
        scale=share_text(host_scale.expected),
        least=share_text(host_scale.least),
        most=share_text(host_scale.most),
        step=duration_text(host_scale.pace),
        phases=f" ({', '.join(phases)})" if phases else "",
    )


# Smallest number of steps for high confidence. With three steps, the median is robust against one outlier.
MIN_TRACE_STEPS = 3
# With a larger share of unexplained time, the confidence is at most medium (first value) or low (second value), because
# every other share is then in doubt. The first value is traceml's warning level for a residual.
UNEXPLAINED_SHARE, LARGE_UNEXPLAINED_SHARE = 0.10, 0.25
# If shapes show the limit (compute or memory bandwidth) of kernels for a smaller share of the kernel time, the limit is
# taken from the names of kernels.
KNOWN_FROM_SHAPES = 0.5
# Measures of the interval between events that do not occur in every step; missing if the event occurred once.
INTERVALS = (steps_between_pauses.__name__, steps_between_interruptions.__name__)
# Defects because of which recorded idle time may not have been idle, or steps may be incomplete.
DOUBTFUL_DEFECTS = ("kernels_lost", "kernels_before_launch", "events_lost", "overlapping_steps", "debugging_aids")
# Steps unlike the others do not show what the run does. A truncated file lacks whole threads or kinds of events: the
# profiler does not write events in the order of time.
PARTIAL_DEFECTS = ("atypical_steps", "ready_batches", "truncated", "several_processes")


def trace_confidence(
    recording: Recording, defects: Sequence[Defect], conclusion: Conclusion, verdicts: Sequence[AnyVerdict]
) -> str:
    """Returns the confidence in a conclusion: high, medium or low.

    The confidence follows from the number and kind of steps, lost events, unexplained time, and the evidence of the
    conclusion's rule. For regimes of the device's own work, it is low if only kernel names show the limit of the
    kernels. On a CPU run without a problem, it is at most medium, because only names of operators show the limit. For
    pauses and interruptions, it is low if only one was recorded, because their frequency is then not known. For
    `unexplained`, it is at most medium.
    """
    confidence = _recording_confidence(recording, defects)
    if conclusion.regime == Regime.UNEXPLAINED and confidence == "high":
        confidence = "medium"
    facts = next(verdict.facts for verdict in verdicts if verdict.regime == conclusion.regime)
    if conclusion.regime in DEVICE_REGIMES and conclusion.severity == "none" and not recording.on_device:
        return "medium" if confidence == "high" else confidence
    if conclusion.regime in DEVICE_REGIMES:
        known = facts.get(roofs_known.__name__)
        return "low" if isinstance(known, Measure) and known.value < KNOWN_FROM_SHAPES else confidence
    once = any(isinstance(facts.get(interval), Missing) for interval in INTERVALS)
    return "low" if once else confidence


def _recording_confidence(recording: Recording, defects: Sequence[Defect]) -> str:
    """Returns the confidence that the recording as a whole allows: high, medium or low."""
    unexplained = recording.account.share(Regime.UNEXPLAINED)
    # On a CPU run the profiler's own time is part of the operators and of the time between them, to unknown shares.
    doubtful_codes = DOUBTFUL_DEFECTS if recording.on_device else (*DOUBTFUL_DEFECTS, "profiler_overhead")
    doubtful = any(defect.code in doubtful_codes for defect in defects)
    partial = any(
        defect.code in ("atypical_steps", "ready_batches", "truncated", "several_processes") for defect in defects
    )
    is_sample = recording.steps.basis != "whole" and len(recording.steps) > 1 and not partial
    if unexplained > LARGE_UNEXPLAINED_SHARE or not is_sample:
        return "low"
    if unexplained > UNEXPLAINED_SHARE or doubtful or len(recording.steps) < MIN_TRACE_STEPS:
        return "medium"
    return "high"


# From the most severe to the least severe.
_LEVELS = ("critical", "warning", "info")
# Widths of the 90 % interval of a gain, as a share of the step time. From the first width on, the confidence is at most
# medium, from the second on, it is low. Both are chosen: a gain "between nothing and half of the time" allows no high
# confidence, and with an interval of three quarters the gain is not known.
WIDE_GAIN, UNKNOWN_GAIN = 0.5, 0.75


def stated_gain(
    verdict: AnyVerdict, cause: AnyCause, prediction: Prediction | NotPredicted | None, on_cpu: bool
) -> pb.Speedup:
    """Returns the gain of fixing `cause`: a simulated gain if there is one, otherwise an upper bound, an estimate from
    measured changes, or none.

    `on_cpu` is True for CPU runs. If the gain is not simulated, `because` of the result states the reason, except if
    the report already says why nothing was predicted from the recording. The basis is "none" if parts of the file are
    missing, because the recorded operations may have waited for operations in the missing parts.
    """
    if isinstance(prediction, NotPredicted) and prediction.because in UNSURE:
        return _none()
    if isinstance(prediction, Prediction) and cause.name in prediction.gains:
        return simulated_speedup(cause.name, prediction)
    if cause.gain is not None:
        expected, low, high = cause.gain
        assumes = word("modelled").substitute()
        return pb.Speedup(expected=expected, low=low, high=high, basis="replay", assumes=assumes)
    most = verdict.judgement.recoverable if cause.certain else 1.0
    gain = _none()
    if cause.bounded and cause.recurs:
        # For telemetry and CPU runs, counters and cores already limit the recoverable share.
        all_of_it = isinstance(prediction, Prediction) and not on_cpu
        gain = _bound(min(most, cause.cost_share), cause, all_of_it, on_cpu)
    if not cause.bounded and cause.certain and cause.recurs:
        gain = _estimate(cause)
    if isinstance(prediction, Prediction) and prediction.check.trusted:
        gain.because = why_not_simulated(cause.name, on_cpu)
    return gain


def stated_confidence(
    confidence: str, regime: Regime, findings: Iterable[pb.Finding], plan: Sequence[pb.PlanStep]
) -> str:
    """Returns the confidence, lowered if the interval of the gain that leads the report is wide.

    The leading gain is the gain of the first fix of the plan or, without a plan, the first simulated or estimated gain
    among the findings of `regime`. Bounds have no interval, and do not change the confidence.
    """
    predicted = (f.speedup for f in findings if f.regime == regime and f.speedup.basis in ("replay", "estimate"))
    leading = plan[0] if plan else next(predicted, None)
    if leading is None or leading.low <= 0 or leading.high <= 0:
        return confidence
    width = 1 / leading.low - 1 / leading.high
    if width >= UNKNOWN_GAIN:
        return "low"
    return "medium" if width >= WIDE_GAIN and confidence == "high" else confidence


def stated_severity(
    conclusion: Conclusion, confidence: str, findings: Iterable[pb.Finding], plan: Sequence[pb.PlanStep]
) -> str:
    """Returns the severity of a conclusion, lowered to the gains that the report states; never raised.

    These gains are the gain of the whole plan, and the gains of findings of the conclusion's regime. A simulated gain
    counts with its expected value, a bound with its upper end. An estimate counts with its expected value, but is
    `critical` only if the low end of its interval is. With low confidence, nothing is critical. The severity of an
    unused GPU, whose gain a recording cannot show, stays the same.
    """
    if conclusion.severity not in _LEVELS or conclusion.regime is Regime.GPU_UNUSED:
        return conclusion.severity
    stated = [_level(plan[-1].speedup_total)] if plan else []
    stated += [_level_of(finding.speedup) for finding in findings if finding.regime == conclusion.regime]
    worst = "warning" if confidence == "low" else "critical"
    return max(conclusion.severity, worst, min(stated, key=_LEVELS.index, default="info"), key=_LEVELS.index)


def lowered_severity(report: pb.Report) -> str:
    """Returns the severity of the verdict of `report`, lowered to the largest gain that a finding of its regime states;
    never raised."""
    stated = report.verdict.severity
    if stated not in _LEVELS:
        return stated
    left = [_level_of(finding.speedup) for finding in report.findings if finding.regime == report.verdict.regime]
    return max(stated, min(left, key=_LEVELS.index, default=stated), key=_LEVELS.index)


def _level_of(gain: pb.Speedup) -> str:
    """Returns the severity for a stated gain. A simulated or measured gain counts with its expected value."""
    if gain.basis in ("replay", "trial"):
        return _level(gain.expected)
    surely = _level(gain.high if gain.basis == "bound" else gain.low)
    if surely == "critical":
        return surely
    return max("warning", _level(gain.expected), key=_LEVELS.index)


def _level(gain: float) -> str:
    """Returns the severity for `gain`, the step time before a change divided by the step time after it."""
    saved = 1 - 1 / max(gain, 1.0)
    return "critical" if saved >= CRITICAL else "warning" if saved >= WARNING else "info"


def _none() -> pb.Speedup:
    return pb.Speedup(expected=1, low=1, high=1, basis="none")


def _bound(recoverable: float, cause: AnyCause, all_of_it: bool, on_cpu: bool) -> pb.Speedup:
    """Returns a bound of the gain from fixing `cause`. The low end is 1 (nothing is saved). The expected value is the
    gain if the fraction `recoverable` (0 to 1) of the step time is saved.

    By default, the upper end equals the expected value. `on_cpu` is True for CPU runs. If `all_of_it` is True (a trace
    of a device), the upper end is the gain if the whole cost of the cause is saved, because it is only an assumption
    that the profiler causes the cost that is not recoverable. On the CPU, loaders, collectives and operators share the
    cores, so a fix that frees cores may also shorten the operators: in two trials of the demo, measured gains of 2.6
    and 2.1 exceeded bounds of 2.0 and 1.75. Therefore, a bound on the CPU states this condition (`unless`).
    `cause.factor` is an upper limit of the gain, and `cause.most` the largest share of the step time that can be saved;
    both are used if they are known."""
    if not 0 < recoverable < 1:
        return _none()
    expected = 1 / (1 - recoverable)
    if cause.factor is not None and cause.factor < expected:
        return pb.Speedup(
            expected=cause.factor, low=1, high=cause.factor, basis="bound", unless=word("advice_reaches").substitute()
        )
    if cause.most is not None and cause.most < 1:
        return pb.Speedup(expected=expected, low=1, high=1 / (1 - max(cause.most, recoverable)), basis="bound")
    if all_of_it and recoverable < cause.cost_share < 1:
        remains = word("part_remains").substitute(share=share_text(1 - recoverable / cause.cost_share))
        return pb.Speedup(expected=expected, low=1, high=1 / (1 - cause.cost_share), basis="bound", unless=remains)
    unless = word("cores_become_free").substitute() if on_cpu else None
    return pb.Speedup(expected=expected, low=1, high=expected, basis="bound", unless=unless)


def _estimate(cause: AnyCause) -> pb.Speedup:
    gain = estimated_gain(cause.name, cause.cost_share)
    if gain is None:
        return _none()
    assumes = word("measured").substitute(changes=gain.changes)
    return pb.Speedup(expected=gain.expected, low=gain.low, high=gain.high, basis="estimate", assumes=assumes)
