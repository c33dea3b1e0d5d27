"""Recomputes a prediction with the profiler's overhead removed from host time.

The host of a recording is slower than that of the training itself, and a host that limits the step hides the gain from
a device. The overhead is known if the step time without the profiler was recorded; otherwise the largest overhead that
was measured is its bound, and so bounds the prediction.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tb_bottleneck.comparison.devices.loader_throughput import worker_throughput_limit
from tb_bottleneck.comparison.devices.replay_prediction import Modification, PredictedStep, ReplayPredictor
from tb_bottleneck.replay.host_scale import host_scale_of, with_host_scale
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, unmodified_graph

Predict = Callable[[float], PredictedStep]


@dataclass(frozen=True)
class SpeedupWithoutProfiler:
    """Time per recorded step before / after, without the profiler.

    `measured` is True if the step time without the profiler was recorded; otherwise the host is the fastest plausible
    one.
    """

    expected: float
    measured: bool


def device_bound(outcomes: Mapping[Estimate, PredictedStep]) -> float:
    """Returns the lower bound of the step in ns: the device's compute time, or 0 if that is itself predicted."""
    least = outcomes[Estimate.HIGH].least_ns
    return least if least == outcomes[Estimate.LOW].least_ns else 0.0


def speedup_without_profiler(predictor: ReplayPredictor, predict: Predict) -> SpeedupWithoutProfiler | None:
    """Returns the speedup with the fastest plausible host, or None if that is the recorded one.

    `predict` returns the expected outcome on a host with this factor of the recorded dispatch time.
    """
    host_scale = host_scale_of(unmodified_graph(predictor.base))
    if host_scale.least == 1.0:
        return None
    before, after = predictor.predict(None, _without_overhead(predictor, host_scale.least)), predict(host_scale.least)
    return SpeedupWithoutProfiler(before.step_ns / after.step_ns, host_scale.solved)


def _without_overhead(predictor: ReplayPredictor, host: float) -> Modification:
    """Returns the change to such a host; workers keep their own pace."""
    limit = worker_throughput_limit(predictor.recording)

    def modify(graph: ModifiedGraph) -> ModifiedGraph:
        graph = with_host_scale(graph, host)
        return graph if limit is None else limit(graph)

    return modify
