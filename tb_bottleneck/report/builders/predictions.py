"""The predictions of the replay in the report: gains of findings, the plan, and the reason if there is none."""

from collections.abc import Iterable, Iterator

from tb_bottleneck.record import Record
from tb_bottleneck.regimes.judge import CRITICAL, WARNING
from tb_bottleneck.replay.check import MAX_FROZEN_SHARE, MAX_REPLAY_ERROR, Check
from tb_bottleneck.replay.host_scale import HostScale
from tb_bottleneck.replay.plan import Prediction
from tb_bottleneck.replay.scenario_texts import assumptions, unsimulated, word
from tb_bottleneck.replay.scenarios.registry import SCENARIO_OF
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.units import share_text

# From the most severe to the least severe.
_LEVELS = ("critical", "warning", "info")


class ReplayFailed(Record, frozen=True):
    """Takes the place of a prediction if the replay raised an error."""


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
        assumes=assumptions()[SCENARIO_OF[cause].name].text,
    )


def plan_rows(prediction: Prediction) -> Iterator[pb.PlanStep]:
    """Yields the steps of the plan."""
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


def replay_check(prediction: Prediction | ReplayFailed) -> pb.Replay:
    """Returns the check of the replay, and the reason if nothing is predicted."""
    if isinstance(prediction, ReplayFailed):
        return pb.Replay(because=word("broken").substitute())
    check, scales = prediction.check, prediction.host_scale
    return pb.Replay(
        error=check.error,
        frozen_share=check.frozen_share,
        because=_because(check),
        host=_host(scales) if scales is not None and prediction.gains else "",
    )


def lowered_severity(
    severity: str, confidence: str, causes: Iterable[str], prediction: Prediction | ReplayFailed | None
) -> str:
    """Returns the severity of a conclusion, lowered to what is known about the gain of its fixes; never raised.

    If every cause was simulated, it follows the gain of all fixes together. Otherwise a fix may save as much as its
    rule states, which is a bound: with low confidence, a bound is not critical.
    """
    if severity not in _LEVELS:
        return severity
    gains = prediction.gains if isinstance(prediction, Prediction) else {}
    plan = prediction.plan if isinstance(prediction, Prediction) else ()
    saved = 1 - 1 / max((step.total.expected for step in plan), default=1.0)
    simulated = "critical" if saved >= CRITICAL else "warning" if saved >= WARNING else "info"
    if gains and all(cause in gains for cause in causes):
        return max(severity, simulated, key=_LEVELS.index)
    return "warning" if severity == "critical" and confidence == "low" and simulated != "critical" else severity


def why_not_simulated(cause: str, on_cpu: bool) -> str:
    """Returns the reason why the gain of fixing this cause was not simulated, as text."""
    scenario = SCENARIO_OF.get(cause)
    if scenario is None:
        return unsimulated().get(cause, "")
    if on_cpu and not scenario.on_cpu:
        return word("on_device").substitute()
    needs = assumptions()[scenario.name].needs
    return word("needs").substitute(needs=needs) if needs else ""


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
