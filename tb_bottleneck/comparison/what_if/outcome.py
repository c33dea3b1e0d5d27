"""The step under changed conditions, for each estimate, and the interval of its gain."""

from collections.abc import Mapping, Sequence

import numpy as np

from tb_bottleneck.comparison.devices.expected_time import step_noise
from tb_bottleneck.comparison.devices.replay_prediction import PredictedStep, ReplayPredictor
from tb_bottleneck.comparison.runs.compared_run import ComparedRun
from tb_bottleneck.comparison.significance import mean_interval
from tb_bottleneck.comparison.what_if.changes.change import Change
from tb_bottleneck.comparison.what_if.without_profiler import SpeedupWithoutProfiler
from tb_bottleneck.regime import Regime
from tb_bottleneck.replay.deviations import HOST_DRIFTS
from tb_bottleneck.replay.gain import Gain, deviations, with_bounds
from tb_bottleneck.replay.host_scale import with_host_scale
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, on_host
from tb_bottleneck.trace.table import Floats


def outcome_of(
    predictor: ReplayPredictor, changes: Sequence[Change], estimate: Estimate, host: float = 1.0, drift: float = 1.0
) -> PredictedStep:
    """Predicts the step with all changes at once, on a host with `host` times the recorded dispatch time.

    With all changes, the host takes `drift` times as long for everything.
    """
    recording = predictor.recording
    ops = recording.trace.device_ops
    lengths: Floats = (ops.end - ops.start).astype(np.float64)
    for change in changes:
        if change.factors is not None:
            lengths = lengths * change.factors(estimate)

    def modify(start: ModifiedGraph) -> ModifiedGraph:
        start = with_host_scale(start, host)
        for change in changes:
            start = start if change.modify is None else change.modify(start, estimate)
        return start if drift == 1.0 else on_host(start, drift)

    touched = any(change.factors is not None for change in changes) and recording.on_device
    bounds = next((change.bounds for change in changes if change.bounds is not None), None)
    return predictor.predict(lengths if touched else None, modify, bounds)


def gain_of_changes(
    run: ComparedRun,
    predictor: ReplayPredictor,
    changes: Sequence[Change],
    outcomes: Mapping[Estimate, PredictedStep],
    samples: float,
    unprofiled: SpeedupWithoutProfiler | None,
) -> Gain:
    """Returns the time per step before / after, with its interval by independent sources of error (replay/gain.py)."""
    expected = outcomes[Estimate.EXPECTED]
    # In the worst case, the unexplained time grows with the samples.
    growing = expected.ns[Regime.UNEXPLAINED] * max(samples - 1, 0.0)
    times = {
        "change": [outcomes[Estimate.LOW].step_ns + growing, outcomes[Estimate.HIGH].step_ns],
        "host": [outcome_of(predictor, changes, Estimate.EXPECTED, drift=factor).step_ns for factor in HOST_DRIFTS],
    }
    gain = run.rank_ns / expected.step_ns
    noise = 1 + max(noise_of(run), step_noise(run.recording))
    gains = {source: [run.rank_ns / ns for ns in slow] for source, slow in times.items()}
    gains |= {"noise": [gain * noise, gain / noise], "profiler": [] if unprofiled is None else [unprofiled.expected]}
    return with_bounds(gain, {source: deviations(gain, ratios) for source, ratios in gains.items()})


def noise_of(run: ComparedRun) -> float:
    """Returns half the 95 % interval of the mean of the undisturbed step times, as a share of it."""
    low, high = mean_interval(run.steady)
    return (high - low) / 2 / max(float(np.mean(run.steady)), 1.0)
