"""What a prediction comes to without the profiler's weight on the host.

A recording's host is slower than the training's own, and a host that is in the way hides what a device would bring. How
much slower is measured where the run's own step time was recorded with it; else what recording was seen to cost at most
bounds it, and so it does the prediction.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tb_bottleneck.comparison.devices.loader_throughput import worker_throughput_limit
from tb_bottleneck.comparison.devices.replay_prediction import BY_REPLAY, PredictedStep, ReplayPredictor
from tb_bottleneck.replay.host_scale import host_scale_of, with_host_scale
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, unmodified_graph

Foretold = Callable[[Estimate, float], PredictedStep]


@dataclass(frozen=True)
class SpeedupWithoutProfiler:
    """Time per recorded step before / after, without the profiler: as expected, at worst and at best.

    `measured`: the run's own step time was recorded; else the host is as fast as it could be at most.
    """

    expected: float
    low: float
    high: float
    measured: bool


def device_bound(found: Mapping[Estimate, PredictedStep]) -> float:
    """What no host makes a step shorter than, in ns: what the device computes in it, if that is not foretold itself."""
    least = found[Estimate.HIGH].least_ns
    return least if least == found[Estimate.LOW].least_ns else 0.0


def speedup_without_profiler(
    engine: ReplayPredictor, foretold: Foretold, slower: float, faster: float
) -> SpeedupWithoutProfiler | None:
    """The prediction with the fastest host that must be reckoned with; None where that is the recorded one.

    `foretold` gives the outcome of a case on a host that takes so many times as long as recorded to dispatch; `slower`
    and `faster` are the shares by which a step may differ from it anyway.
    """
    if not engine.base.check.trusted:
        return None
    scales = host_scale_of(unmodified_graph(engine.base))
    if scales.least == 1.0:
        return None
    before = {estimate: engine.predict(None, _lighter(engine, scales.least, estimate)).step_ns for estimate in Estimate}
    after = {estimate: foretold(estimate, scales.least) for estimate in Estimate}
    expected = after[Estimate.EXPECTED]
    if expected.basis != BY_REPLAY:
        return None
    gains = {estimate: before[estimate] / after[estimate].step_ns for estimate in Estimate}
    likely, best = gains[Estimate.EXPECTED], max(gains[Estimate.EXPECTED], gains[Estimate.HIGH]) * (1 + faster)
    least = min(device_bound(after), expected.step_ns)
    if least:
        best = min(best, before[Estimate.HIGH] / least)
    return SpeedupWithoutProfiler(likely, min(gains.values()) / (1 + slower), max(best, likely), scales.solved)


def _lighter(engine: ReplayPredictor, host: float, estimate: Estimate) -> Callable[[ModifiedGraph], ModifiedGraph]:
    """The recorded world on such a host; workers make batches at their own pace beside it."""
    paced = worker_throughput_limit(engine.recording, estimate)

    def lighter(graph: ModifiedGraph) -> ModifiedGraph:
        graph = with_host_scale(graph, host)
        return graph if paced is None else paced(graph)

    return lighter
