"""What B's device promises for the work that A's run does: a time, an interval, and a reason for each regime."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.comparison.devices.device_model import device_by_sheet, device_of, speed_ratio
from tb_bottleneck.comparison.devices.kernel_scaling import (
    DevicePair,
    collective_assumptions,
    precision_label,
    roofs_there,
    scaled_lengths,
    vendor_assumptions,
)
from tb_bottleneck.comparison.devices.loader_throughput import loader_assumptions, worker_throughput_limit
from tb_bottleneck.comparison.devices.replay_prediction import BY_REPLAY, PredictedStep, ReplayPredictor
from tb_bottleneck.comparison.significance import MIN_COMPARED_STEPS
from tb_bottleneck.knowledge.precisions import Precision, precision_of
from tb_bottleneck.regime import REGIMES, Regime
from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.roofline.underfilled import TOO_SHORT_NS
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, Work
from tb_bottleneck.units import share_text

# An interval of device times says nothing of the host. With this much on either side the interval holds what was
# measured in 99 % of 300 simulated pairs, each piece of whose host work varies by up to 5 % (tests/EXPECTED.md).
HOST_ERROR = 0.05
# Of one step alone it is not known how much steps differ: there the interval has on either side what predictions of
# this kind miss by on average (Habitat, ATC'21); and so it has where a recording could not be replayed.
PREDICTION_ERROR = 0.12
UNCHANGED_BELOW = 0.02  # a time that changes by less is called unchanged


@dataclass(frozen=True)
class ExpectedTime:
    """Time per step in ns by regime, as expected; the whole step at worst and at best; reasons by regime.

    `kernels` is how many times as fast the device's work alone would be over.
    """

    step: PredictedStep
    slowest_ns: float
    fastest_ns: float
    kernels: float
    because: dict[Regime, str]
    assumptions: tuple[str, ...]


def device_pair_of(a: Recording, b: Recording) -> DevicePair | None:
    """From A's device to B's; None where one of them is not known, or both are the same."""
    first, second = device_of(a.trace), device_of(b.trace)
    if first is None or second is None or first.name == second.name:
        return None
    on_a, on_b = device_by_sheet(a.trace), device_by_sheet(b.trace)
    if first.basis != second.basis and on_a is not None and on_b is not None:
        return DevicePair(on_a, on_b)  # what one device reached and what the other's maker prints are no ratio
    return DevicePair(first, second)


def expected_time(recording: Recording, move: DevicePair) -> ExpectedTime:
    """What the move would change."""
    engine = ReplayPredictor(recording)
    lengths = scaled_lengths(recording, move, Estimate.EXPECTED)
    step = engine.predict(lengths, worker_throughput_limit(recording), roofs_there(recording, move))
    slow, fast = (
        engine.predict(scaled_lengths(recording, move, estimate), worker_throughput_limit(recording, estimate)).step_ns
        for estimate in (Estimate.LOW, Estimate.HIGH)
    )
    error = host_error(recording) if step.basis == BY_REPLAY else PREDICTION_ERROR
    ops = recording.trace.device_ops
    kernels = np.isin(ops.work, COMPUTE_KERNELS) & recording.in_window(ops.start)
    length = (ops.end - ops.start)[kernels]
    return ExpectedTime(
        step=step,
        slowest_ns=max(slow, step.step_ns) * (1 + error),
        fastest_ns=min(fast, step.step_ns) * (1 - error),
        kernels=float(length.sum() / lengths[kernels].sum()) if length.sum() else 1.0,
        because=_reasons(recording, move, step),
        assumptions=_assumptions(recording, move, step),
    )


def host_error(recording: Recording) -> float:
    """The share of a step by which what the host does may take longer or shorter than was recorded."""
    return HOST_ERROR if len(recording.steps) >= MIN_COMPARED_STEPS else PREDICTION_ERROR


def _reasons(recording: Recording, move: DevicePair, step: PredictedStep) -> dict[Regime, str]:
    """Why each regime becomes what it becomes."""
    reasons = {
        Regime.COMPUTE: _arithmetic(recording, move),
        Regime.MEMORY: f"device memory: {move.a.bandwidth:,.0f} GB/s on A, {move.b.bandwidth:,.0f} on B",
        Regime.UNDERFILLED: _smallness(recording, move),
        Regime.TRANSFER: _link(recording, move),
        Regime.COMMUNICATION: _peers(move),
    }
    steps = len(recording.steps)
    for regime in REGIMES:
        before, after = recording.account.ns[regime] / steps, step.ns[regime]
        if regime == Regime.UNEXPLAINED:
            reasons[regime] = "taken to be the same"
        elif regime not in reasons:
            reasons[regime] = _host(before, after)
    return reasons


def _host(before: float, after: float) -> str:
    if after > before * (1 + UNCHANGED_BELOW):
        return "host work that A's device hid comes to light"
    if after < before * (1 - UNCHANGED_BELOW):
        return "B's device hides more of the host's work"
    return "the host is taken to be the same"


def _arithmetic(recording: Recording, move: DevicePair) -> str:
    found = _dominant(recording)
    ratio = speed_ratio(move.a, move.b, found)
    if found is None or ratio is None:
        return "which type the products run in is not known; taken as fp32 on ordinary units"
    on_a, on_b = move.a.rate(found), move.b.rate(found)
    there = f"{on_a:,.0f} TFLOP/s on A" if on_a else "not known on A"
    here = f"{on_b:,.0f} on B" if on_b else f"no such units on B, {move.b.vector or 0:,.0f} as fp32"
    return f"products run in {precision_label(found)}: {there}, {here} by {_sources(move)}"


def _sources(move: DevicePair) -> str:
    """Where the rates of the two devices come from."""
    return " and ".join(dict.fromkeys((move.a.basis, move.b.basis)))


def _dominant(recording: Recording) -> Precision | None:
    """The precision in which products spend most time."""
    ops = recording.trace.device_ops
    rows = (ops.work == Work.CONTRACTION) & recording.in_window(ops.start)
    names, which = np.unique(ops.name[rows], return_inverse=True)
    time = np.bincount(which, weights=(ops.end - ops.start)[rows], minlength=len(names))
    by: dict[Precision, float] = {}
    for name, ns in zip(names.tolist(), time.tolist(), strict=True):
        precision = precision_of(recording.trace.names[name])
        if precision is not None:
            by[precision] = by.get(precision, 0.0) + ns
    return max(by, key=lambda one: by[one]) if by else None


def _smallness(recording: Recording, move: DevicePair) -> str:
    ops = recording.trace.device_ops
    kernels = np.isin(ops.work, COMPUTE_KERNELS) & recording.in_window(ops.start)
    if not kernels.any():
        return "no kernels"
    short = float(np.mean((ops.end - ops.start)[kernels] < TOO_SHORT_NS))
    said = []
    if round(short * 100):
        said.append(
            f"{share_text(short)} of the kernels are over in {TOO_SHORT_NS // 1000} µs, which no device shortens"
        )
    if move.a.multiprocessors and move.b.multiprocessors and (ops.blocks[kernels] > 0).any():
        few = float(np.mean(ops.blocks[kernels] < move.b.multiprocessors))
        both = f"{move.b.multiprocessors} multiprocessors (A: {move.a.multiprocessors})"
        said.append(f"{share_text(few)} of the kernels have fewer blocks than B's {both}" if round(few * 100) else "")
    return "; ".join(filter(None, said)) or "by the roof that is nearest"


def _link(recording: Recording, move: DevicePair) -> str:
    trace = recording.trace
    if any("Pageable" in trace.names[name] for name in np.unique(trace.device_ops.name).tolist()):
        return "copies from pageable memory are staged by the host, which is taken to be the same"
    if move.link is None:
        return "the links are not known; taken to be the same"
    return f"link of the best slot: {move.a.link:.0f} GB/s usable on A, {move.b.link:.0f} on B"


def _peers(move: DevicePair) -> str:
    if move.peers is None:
        return "the links between devices are not known; taken to be the same"
    return f"links between devices: {move.a.peers:,.0f} GB/s on A, {move.b.peers:,.0f} on B"


def _assumptions(recording: Recording, move: DevicePair, step: PredictedStep) -> tuple[str, ...]:
    told = [
        "the host, the loader and the storage are the same, and the profiler weighs on the host as it did",
        "each kernel reaches the same share of its roof, and the same kernels are chosen",
        *vendor_assumptions(move),
        *loader_assumptions(recording),
        *collective_assumptions(recording),
    ]
    known = float(np.mean(recording.kernel_bounds.bound_by > 0)) if len(recording.kernel_bounds) else 0.0
    if known < 0.5:
        told.append("what bounds a kernel is told from its name; record_shapes=True would tell it from its work")
    if recording.on_device and (move.b.multiprocessors is None or move.a.multiprocessors is None):
        told.append("how many multiprocessors there are to fill is not known for both devices")
    if step.basis != BY_REPLAY:
        told.append("by the account alone: the recording's dependencies could not be replayed")
    return tuple(told)
