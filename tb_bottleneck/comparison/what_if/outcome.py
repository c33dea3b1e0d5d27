"""The results of a prediction: the step for each estimate, the interval of the gain, and the peak memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.deviations import HOST_DRIFTS
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.base.units import bytes_text
from tb_bottleneck.comparison.devices.device_rates import device_named
from tb_bottleneck.comparison.devices.expected_time import step_noise
from tb_bottleneck.comparison.devices.kernel_scaling import worker_throughput_limit
from tb_bottleneck.comparison.devices.replay_prediction import Modification, PredictedStep, ReplayPredictor
from tb_bottleneck.comparison.runs.compared_run import ComparedRun
from tb_bottleneck.comparison.significance import mean_interval
from tb_bottleneck.knowledge.gpus import gpu_named
from tb_bottleneck.knowledge.memory_texts import device_memory, sentence
from tb_bottleneck.measures.batch_size import batch_size_of, passes_of
from tb_bottleneck.memory.forecast.forecasts import Forecast, Forecaster
from tb_bottleneck.memory.trace_memory import TraceMemory, trace_memory
from tb_bottleneck.replay.gain import Gain, deviations, with_bounds
from tb_bottleneck.replay.host_scale import HostScale, host_scale_of, with_host_scale
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, on_host, unmodified_graph
from tb_bottleneck.replay.scenario import ParameterScenario
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.trace.table import Floats

_HALF_PRECISIONS = ("bf16", "fp16")


def add_peak_memory(
    prediction: pb.WhatIf, recording: Recording, *, device: str | None, batch: int | None, precision: str | None
) -> None:
    """Adds the predicted peak memory and a note to `prediction`, if memory was recorded and a change affects it.

    `device`, `batch` (samples per step) and `precision` are the changes; None means unchanged. `batch` together with a
    half-precision type is not predicted. Raises NotFound if the device is not listed.
    """
    memory = trace_memory(recording.trace)
    changes_type = precision in _HALF_PRECISIONS
    if isinstance(memory, Missing) or (batch is not None and changes_type):
        return
    forecast = _forecast(memory, recording, batch, changes_type, device is not None)
    if forecast is None:
        return
    capacity = memory.account.capacity if device is None else _memory_of(device)
    message = pb.PeakMemory(
        peak_bytes=forecast.peak, low_bytes=forecast.low, high_bytes=forecast.high, now_bytes=memory.account.peak
    )
    if forecast.change != "device":
        message.assumes = sentence("assumes", forecast.change)
    fits = forecast.fits(capacity)
    if capacity is not None and fits is not None:
        message.capacity_bytes, message.fits = capacity, fits
    largest = None if changes_type else _largest_batch(memory, recording, capacity)
    if largest is not None:
        message.largest_batch = largest
    prediction.memory.CopyFrom(message)
    prediction.notes.append(_note(message))


def _forecast(
    memory: TraceMemory, recording: Recording, batch: int | None, changes_type: bool, other_device: bool
) -> Forecast | None:
    """Returns the forecast of the peak memory for one change: `batch` samples per step, half precision
    (`changes_type`), or another device with the same memory use (`other_device`). Returns None if it is not known or
    nothing changes."""
    if batch is not None:
        now = batch_size_of(recording)
        if isinstance(now, Missing):
            return None
        # Gradients accumulate over the passes of a step, which therefore share the memory.
        passes = passes_of(recording)
        return Forecaster(memory, max(now.samples // passes, 1)).batch(max(round(batch / passes), 1))
    forecaster = Forecaster(memory, None)
    if changes_type:
        return forecaster.precision()
    return forecaster.unchanged() if other_device else None


def _largest_batch(memory: TraceMemory, recording: Recording, capacity: int | None) -> int | None:
    """Returns the largest number of samples per step whose memory fits into `capacity` bytes; None if the capacity or
    the batch size is not known, or if it is not known that the recorded batch fits."""
    now = batch_size_of(recording)
    if isinstance(now, Missing) or capacity is None:
        return None
    passes = passes_of(recording)
    samples = max(now.samples // passes, 1)
    forecaster = Forecaster(memory, samples)
    return now.samples * forecaster.largest_factor(capacity) if forecaster.unchanged().fits(capacity) else None


def _memory_of(device: str) -> int | None:
    """Returns the memory of a device in bytes; None if unknown. Raises NotFound if the device is not listed."""
    model = device_named(device)
    gpu = gpu_named(model.name)
    names = (device, model.name, *(() if gpu is None else (gpu.name,)))
    return next((size for name in names if (size := device_memory(name)) is not None), None)


def _note(memory: pb.PeakMemory) -> str:
    """Returns a sentence about the predicted peak memory, and whether it fits into the memory of the device."""
    name = "unknown_capacity"
    if memory.HasField("fits"):
        name = "fits" if memory.fits else "may_not_fit"
    values = {
        "peak": bytes_text(memory.peak_bytes),
        "low": bytes_text(memory.low_bytes),
        "high": bytes_text(memory.high_bytes),
        "now": bytes_text(memory.now_bytes),
        "capacity": bytes_text(memory.capacity_bytes),
    }
    note = sentence("what_if", name, values)
    if not memory.HasField("largest_batch"):
        return note
    return f"{note} {sentence('what_if', 'largest_batch', {'samples': f'{memory.largest_batch:,.0f}'})}"


@dataclass(frozen=True)
class Baseline:
    """The predicted step before the changes, without the profiler overhead on the host.

    `host` has the factors by which the recorded dispatch time is multiplied to remove this overhead. On a CPU they are
    1, because the times of the recording are already corrected (attribution/profiler_time/removal.py).
    """

    step: PredictedStep
    host: HostScale


def device_bound(outcomes: Mapping[Estimate, PredictedStep]) -> float:
    """Returns a lower bound of the predicted step time in ns: the time in which the device computes. Returns 0 (no
    bound) if the low and the high estimate of this time differ. `outcomes` has the predicted step for each estimate."""
    least = outcomes[Estimate.HIGH].least_ns
    return least if least == outcomes[Estimate.LOW].least_ns else 0.0


def baseline_of(predictor: ReplayPredictor) -> Baseline:
    """Returns the step before any change, with the expected scale of the host (replay/host_scale.py).

    If this scale is only an estimate from the recorded events, the profiler overhead is not removed.
    """
    recording, host = predictor.recording, HostScale(1.0, 1.0, 1.0, solved=False)
    if recording.on_device:
        host = host_scale_of(unmodified_graph(predictor.base))
        if not (host.solved or host.hidden):
            host = HostScale(1.0, host.least, 1.0, solved=False)
    return Baseline(predictor.predict(None, _without_overhead(predictor, host.expected)), host)


def _without_overhead(predictor: ReplayPredictor, host: float) -> Modification:
    """Returns a function that multiplies the dispatch time of a graph by `host`. Loader workers that are too slow for
    the training still limit the steps."""
    limit = worker_throughput_limit(predictor.recording)

    def modify(graph: ModifiedGraph) -> ModifiedGraph:
        graph = with_host_scale(graph, host)
        return graph if limit is None else limit(graph)

    return modify


def outcome_of(
    predictor: ReplayPredictor,
    changes: Sequence[ParameterScenario],
    estimate: Estimate,
    host: float = 1.0,
    drift: float = 1.0,
) -> PredictedStep:
    """Predicts the step with all `changes` together, each with the effect of `estimate`.

    The recorded dispatch time is first multiplied by `host`, which removes the profiler overhead. After the changes,
    all host time is multiplied by `drift`, as on a faster or slower host.
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
            start = change.apply(start, estimate)
        return start if drift == 1.0 else on_host(start, drift)

    touched = any(change.factors is not None for change in changes) and recording.on_device
    bounds = next((change.bounds for change in changes if change.bounds is not None), None)
    return predictor.predict(lengths if touched else None, modify, bounds)


def gain_of_changes(
    run: ComparedRun,
    predictor: ReplayPredictor,
    changes: Sequence[ParameterScenario],
    outcomes: Mapping[Estimate, PredictedStep],
    samples: float,
    baseline: Baseline,
) -> Gain:
    """Returns the gain (time per step before / after the changes) with its 90 % interval.

    The interval combines independent sources of error (replay/gain.py). `outcomes` has the predicted step with all
    `changes` for each estimate, `baseline` the step before the changes. `samples` is (samples per step after the
    changes / before).
    """
    expected, host, before = outcomes[Estimate.EXPECTED], baseline.host, baseline.step.step_ns
    # In the worst case, the unexplained time grows with the samples.
    growing = expected.ns[Regime.UNEXPLAINED] * max(samples - 1, 0.0)
    times = {
        "change": [outcomes[Estimate.LOW].step_ns + growing, outcomes[Estimate.HIGH].step_ns],
        "host": [
            outcome_of(predictor, changes, Estimate.EXPECTED, host.expected, factor).step_ns for factor in HOST_DRIFTS
        ],
    }
    gain = before / expected.step_ns
    noise = 1 + max(noise_of(run), step_noise(run.recording))
    gains = {source: [before / ns for ns in slow] for source, slow in times.items()}
    others = {host.least, host.most} - {host.expected}
    gains |= {
        "noise": [gain * noise, gain / noise],
        "profiler": [_gain_at(predictor, changes, scale) for scale in sorted(others)],
    }
    return with_bounds(gain, {source: deviations(gain, ratios) for source, ratios in gains.items()})


def _gain_at(predictor: ReplayPredictor, changes: Sequence[ParameterScenario], host: float) -> float:
    """Returns the expected gain if the dispatch time without the profiler is `host` times the recorded one."""
    before = predictor.predict(None, _without_overhead(predictor, host)).step_ns
    return before / outcome_of(predictor, changes, Estimate.EXPECTED, host).step_ns


def noise_of(run: ComparedRun) -> float:
    """Returns the relative uncertainty of the mean step time without isolated long steps: half the width of its 95 %
    interval, divided by the mean."""
    low, high = mean_interval(run.steady)
    return (high - low) / 2 / max(float(np.mean(run.steady)), 1.0)
