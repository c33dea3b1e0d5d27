"""Predicts the step time of run A on the device of run B: a time, an interval, and a reason for each regime."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.deviations import HOST_DRIFTS, RUN_TO_RUN_NOISE
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.base.units import share_text
from tb_bottleneck.comparison.devices.device_rates import device_by_sheet, device_of, speed_ratio
from tb_bottleneck.comparison.devices.kernel_scaling import (
    DevicePair,
    bounds_on_b,
    collective_assumptions,
    loader_assumptions,
    precision_label,
    scaled_lengths,
    vendor_assumptions,
    worker_throughput_limit,
)
from tb_bottleneck.comparison.devices.replay_prediction import Modification, PredictedStep, ReplayPredictor
from tb_bottleneck.comparison.significance import MIN_COMPARED_STEPS
from tb_bottleneck.knowledge.catalogue import Precision, precision_of
from tb_bottleneck.replay.gain import deviations, with_bounds
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, on_host
from tb_bottleneck.roofline.kernel_bounds import TOO_SHORT_NS
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, Work

# Relative error that is assumed for a recording with a single step, whose variation between steps is unknown: the mean
# error of predictions of this kind (Habitat, ATC'21).
PREDICTION_ERROR = 0.12
UNCHANGED_BELOW = 0.02  # a time with a smaller relative change is called unchanged


@dataclass(frozen=True)
class ExpectedTime:
    """The predicted step of A on B's device, and the reasons and assumptions of the prediction.

    `step` is the expected step. `slowest_ns` and `fastest_ns` are the bounds of the 90 % interval of its time.
    `kernels` is the speedup of the kernels alone (total time on A / on B). `because` has the reason for the time of
    each regime.
    """

    step: PredictedStep
    slowest_ns: float
    fastest_ns: float
    kernels: float
    because: dict[Regime, str]
    assumptions: tuple[str, ...]


def device_pair_of(a: Recording, b: Recording) -> DevicePair | None:
    """Returns the devices of recordings A and B, or None if one device is not known or both are the same.

    If only one of the devices has measured rates, the rates of both are taken from data sheets if possible, because the
    ratio of measured rates and data sheet rates has no meaning.
    """
    first, second = device_of(a.trace), device_of(b.trace)
    if first is None or second is None or first.name == second.name:
        return None
    on_a, on_b = device_by_sheet(a.trace), device_by_sheet(b.trace)
    if first.basis != second.basis and on_a is not None and on_b is not None:
        return DevicePair(on_a, on_b)  # measured rates and data sheet rates have no meaningful ratio
    return DevicePair(first, second)


def expected_time(predictor: ReplayPredictor, devices: DevicePair) -> ExpectedTime:
    """Predicts the step of the predictor's recording on the device `devices.b`, with its 90 % interval."""
    recording = predictor.recording
    lengths = scaled_lengths(recording, devices, Estimate.EXPECTED)
    limit = worker_throughput_limit(recording)
    step = predictor.predict(lengths, limit, bounds_on_b(recording, devices))
    kernels_only = [
        predictor.predict(scaled_lengths(recording, devices, estimate), limit).step_ns
        for estimate in (Estimate.LOW, Estimate.HIGH)
    ]
    workers_only = predictor.predict(lengths, worker_throughput_limit(recording, Estimate.LOW)).step_ns
    hosts = [predictor.predict(lengths, partial(_on_host, limit, factor)).step_ns for factor in HOST_DRIFTS]
    error = 1 + step_noise(recording)
    noise = [step.step_ns * error, step.step_ns / error]
    sources = {"kernels": kernels_only, "workers": [workers_only], "host": hosts, "noise": noise}
    # Steps of a damaged file may take no time.
    ratios = {source: [step.step_ns / ns if ns > 0 else 1.0 for ns in times] for source, times in sources.items()}
    bounds = with_bounds(1.0, {source: deviations(1.0, each) for source, each in ratios.items()})
    ops = recording.trace.device_ops
    kernels = np.isin(ops.work, COMPUTE_KERNELS) & recording.in_window(ops.start)
    length = (ops.end - ops.start)[kernels]
    return ExpectedTime(
        step=step,
        slowest_ns=step.step_ns / bounds.low,
        fastest_ns=step.step_ns / bounds.high,
        kernels=float(length.sum() / lengths[kernels].sum()) if length.sum() else 1.0,
        because=_reasons(recording, devices, step),
        assumptions=_assumptions(recording, devices),
    )


def step_noise(recording: Recording) -> float:
    """Returns the relative difference to expect between the step times of two runs, apart from a faster or slower host.
    This difference is larger (PREDICTION_ERROR) if the recording has a single step, because the variation between steps
    is then unknown."""
    return RUN_TO_RUN_NOISE if len(recording.steps) >= MIN_COMPARED_STEPS else PREDICTION_ERROR


def _on_host(limit: Modification | None, factor: float, graph: ModifiedGraph) -> ModifiedGraph:
    """Returns `graph` on a host that takes `factor` times as long, after `limit`, which is the limit by loader workers
    (worker_throughput_limit) or None."""
    return on_host(graph if limit is None else limit(graph), factor)


def _reasons(recording: Recording, devices: DevicePair, step: PredictedStep) -> dict[Regime, str]:
    """Returns for each regime a clause with the reason for its time in the predicted `step`."""
    reasons = {
        Regime.COMPUTE: _arithmetic(recording, devices),
        Regime.MEMORY: f"device memory: {devices.a.bandwidth:,.0f} GB/s on A, {devices.b.bandwidth:,.0f} on B",
        Regime.UNDERFILLED: _smallness(recording, devices),
        Regime.TRANSFER: _link(recording, devices),
        Regime.COMMUNICATION: _peers(devices),
    }
    steps = len(recording.steps)
    for regime in REGIMES:
        before, after = recording.account.ns[regime] / steps, step.ns[regime]
        if regime == Regime.UNEXPLAINED:
            reasons[regime] = "assumed to stay the same"
        elif regime not in reasons:
            reasons[regime] = _host(before, after)
    return reasons


def _host(before: float, after: float) -> str:
    """Returns the reason for the change of a host regime. `before` and `after` are its times in the same unit."""
    if after > before * (1 + UNCHANGED_BELOW):
        return "host work that A's device hid becomes visible"
    if after < before * (1 - UNCHANGED_BELOW):
        return "B's device hides more of the host's work"
    return "the host is assumed to stay the same"


def _arithmetic(recording: Recording, devices: DevicePair) -> str:
    precision = _dominant(recording)
    ratio = speed_ratio(devices.a, devices.b, precision)
    if precision is None or ratio is None:
        return "the precision of products is unknown; assumed to be fp32 on vector units"
    on_a, on_b = devices.a.rate(precision), devices.b.rate(precision)
    rate_a = f"{on_a:,.0f} TFLOP/s on A" if on_a else "not known on A"
    rate_b = f"{on_b:,.0f} on B" if on_b else f"no such units on B, {devices.b.vector or 0:,.0f} as fp32"
    return f"products run in {precision_label(precision)}: {rate_a}, {rate_b} by {_sources(devices)}"


def _sources(devices: DevicePair) -> str:
    """Returns the sources of the rates of both devices, such as "data sheets"."""
    return " and ".join(dict.fromkeys((devices.a.basis, devices.b.basis)))


def _dominant(recording: Recording) -> Precision | None:
    """Returns the precision in which contractions spend the most time; None if no kernel name shows it."""
    ops = recording.trace.device_ops
    rows = (ops.work == Work.CONTRACTION) & recording.in_window(ops.start)
    names, which = np.unique(ops.name[rows], return_inverse=True)
    time = np.bincount(which, weights=(ops.end - ops.start)[rows], minlength=len(names))
    time_of: dict[Precision, float] = {}
    for name, ns in zip(names.tolist(), time.tolist(), strict=True):
        precision = precision_of(recording.trace.names[name])
        if precision is not None:
            time_of[precision] = time_of.get(precision, 0.0) + ns
    return max(time_of, key=lambda precision: time_of[precision]) if time_of else None


def _smallness(recording: Recording, devices: DevicePair) -> str:
    ops = recording.trace.device_ops
    kernels = np.isin(ops.work, COMPUTE_KERNELS) & recording.in_window(ops.start)
    if not kernels.any():
        return "no kernels"
    short = float(np.mean((ops.end - ops.start)[kernels] < TOO_SHORT_NS))
    reasons = []
    if round(short * 100):
        reasons.append(
            f"{share_text(short)} of the kernels take less than {TOO_SHORT_NS // 1000} µs, which no device shortens"
        )
    if devices.a.multiprocessors and devices.b.multiprocessors and (ops.blocks[kernels] > 0).any():
        few = float(np.mean(ops.blocks[kernels] < devices.b.multiprocessors))
        both = f"{devices.b.multiprocessors} multiprocessors (A: {devices.a.multiprocessors})"
        reasons.append(
            f"{share_text(few)} of the kernels have fewer blocks than B's {both}" if round(few * 100) else ""
        )
    return "; ".join(filter(None, reasons)) or "limited by the nearest roof"


def _link(recording: Recording, devices: DevicePair) -> str:
    trace = recording.trace
    if any("Pageable" in trace.names[name] for name in np.unique(trace.device_ops.name).tolist()):
        return "copies from pageable memory are staged by the host, which is assumed to stay the same"
    if devices.link_ratio is None:
        return "the links are unknown; assumed to stay the same"
    return f"link in the best slot: {devices.a.link:.0f} GB/s usable on A, {devices.b.link:.0f} on B"


def _peers(devices: DevicePair) -> str:
    if devices.peer_ratio is None:
        return "the links between devices are unknown; assumed to stay the same"
    return f"links between devices: {devices.a.peers:,.0f} GB/s on A, {devices.b.peers:,.0f} on B"


def _assumptions(recording: Recording, devices: DevicePair) -> tuple[str, ...]:
    assumptions = [
        "host, loader and storage are the same, and the profiler overhead on the host is the same",
        "each kernel reaches the same share of its roof, and the same kernels are chosen",
        *vendor_assumptions(devices),
        *loader_assumptions(recording),
        *collective_assumptions(recording),
    ]
    known_share = float(np.mean(recording.kernel_bounds.bound_by > 0)) if len(recording.kernel_bounds) else 0.0
    if known_share < 0.5:
        assumptions.append(
            "what limits a kernel is derived from its name; with record_shapes=True it is derived from its work"
        )
    if recording.on_device and (devices.b.multiprocessors is None or devices.a.multiprocessors is None):
        assumptions.append("the number of multiprocessors is not known for both devices")
    return tuple(assumptions)
