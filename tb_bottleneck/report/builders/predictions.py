"""Writes what the replay predicts into the report: gains of findings, the plan, and why there is none."""

from tb_bottleneck.regimes.judge import CRITICAL
from tb_bottleneck.replay.check import MAX_FROZEN_SHARE, MAX_REPLAY_ERROR, Check
from tb_bottleneck.replay.host_scale import HostScale
from tb_bottleneck.replay.plan import Gain, Prediction
from tb_bottleneck.replay.scenario_texts import assumptions, unsimulated, word
from tb_bottleneck.replay.scenarios.registry import SCENARIO_OF
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.units import share_text


def set_prediction(report: pb.Report, prediction: Prediction) -> None:
    """Replaces the bounds of findings by simulated gains where there are any, and adds plan and check."""
    for finding in report.findings:
        gain = prediction.gains.get(finding.cause)
        if gain is not None:
            finding.speedup.CopyFrom(_speedup(gain, SCENARIO_OF[finding.cause].name))
        elif prediction.check.trusted:
            finding.speedup.because = why_not(finding.cause, report.device.kind == "cpu")
    for step in prediction.plan:
        words = assumptions()[step.scenario]
        report.plan.add(
            cause=step.cause,
            step_ns_after=step.step_ns,
            speedup_total=step.total.expected,
            title=words.title,
            low=step.total.low,
            high=step.total.high,
            assumes=words.text,
        )
    _lower_severity(report, prediction)
    report.replay.error, report.replay.frozen_share = prediction.check.error, prediction.check.frozen_share
    report.replay.because = _because(prediction.check)
    if prediction.host_scale is not None and prediction.gains:
        report.replay.host = _host(prediction.host_scale)


def _lower_severity(report: pb.Report, prediction: Prediction) -> None:
    """Nothing is critical that all cures together are not expected to give back.

    Only where each of them was simulated: what could not be may be worth what its rule says.
    """
    if report.verdict.severity != "critical" or not all(f.cause in prediction.gains for f in report.findings):
        return
    expected = max((step.total.expected for step in prediction.plan), default=1.0)
    if 1 - 1 / expected < CRITICAL:
        report.verdict.severity = "warning"


def set_broken_replay(report: pb.Report) -> None:
    """Says that the replay failed; every finding keeps the bound that its rule states."""
    report.replay.because = word("broken").substitute()


def why_not(cause: str, on_cpu: bool) -> str:
    """Why the gain of curing this was not simulated, in words."""
    scenario = SCENARIO_OF.get(cause)
    if scenario is None:
        return unsimulated().get(cause, "")
    if on_cpu and not scenario.on_cpu:
        return word("on_device").substitute()
    needs = assumptions()[scenario.name].needs
    return word("needs").substitute(needs=needs) if needs else ""


def _speedup(gain: Gain, scenario: str) -> pb.Speedup:
    return pb.Speedup(
        expected=gain.expected,
        low=gain.low,
        high=gain.high,
        basis="replay",
        assumes=assumptions()[scenario].text,
    )


def _because(check: Check) -> str:
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
    return word("estimated").substitute(
        scale=share_text(host_scale.expected), least=share_text(host_scale.least), most=share_text(host_scale.most)
    )
