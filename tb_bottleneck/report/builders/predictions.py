"""The predictions of the replay in the report: gains of findings, the plan (fixes in order), and the reason if nothing
is predicted."""

from collections.abc import Iterator

from tb_bottleneck.base.measure import Record
from tb_bottleneck.base.units import share_text
from tb_bottleneck.bottlenecks.plan import Prediction
from tb_bottleneck.bottlenecks.registry import scenarios
from tb_bottleneck.bottlenecks.texts import assumptions, unsimulated, word
from tb_bottleneck.replay.host_scale import HostScale
from tb_bottleneck.replay.simulator import MAX_FROZEN_SHARE, MAX_REPLAY_ERROR, Check
from tb_bottleneck.schema import bottleneck_pb2 as pb


class NotPredicted(Record, frozen=True):
    """Replaces a prediction that could not be made. `because` is a key of the table `words` in scenarios.toml.

    `because` is "broken" if the replay raised an error, and "truncated" if parts of the file are missing.
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
    return word("hidden" if host_scale.hidden else "estimated").substitute(
        scale=share_text(host_scale.expected), least=share_text(host_scale.least), most=share_text(host_scale.most)
    )
