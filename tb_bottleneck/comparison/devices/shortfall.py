"""Splits the shortfall, which is B's measured time minus B's expected time, into parts with causes, regime by regime.

All regimes of the device's own work are one part, because a kernel may be limited by another roof (arithmetic or
bandwidth) on another device.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.base.regime import DEVICE_REGIMES, REGIMES, Owner, Regime
from tb_bottleneck.bottlenecks.compute.kernel_efficiency import types_multiplied
from tb_bottleneck.bottlenecks.transfer.facts import pinned_bandwidth
from tb_bottleneck.comparison.devices.device_rates import VECTOR_FP32
from tb_bottleneck.comparison.devices.kernel_scaling import DevicePair, scaled_lengths
from tb_bottleneck.comparison.runs.compared_run import ComparedRun
from tb_bottleneck.comparison.texts.value_text import sanitize, time_text
from tb_bottleneck.comparison.workload.environment import version_text
from tb_bottleneck.comparison.workload.operator_time import device_operators, host_ratio
from tb_bottleneck.knowledge.catalogue import precision_of
from tb_bottleneck.knowledge.comparison_texts import fact_titles, first_cuda, shortfall_text
from tb_bottleneck.knowledge.gpus import GIGA
from tb_bottleneck.measures.batch_size import batch_size_of
from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.trace.device_ops import Work

# Smaller parts of B's time are added to the unexplained part: a list of tiny parts explains nothing.
MIN_SHORTFALL_SHARE = 0.02
# Smallest factor between the times of the same operators at which two hosts count as different. On one host, the same
# operators differ by up to 7 % between public recordings of one model (median of operators).
HOST_DIFFERS_FROM = 1.15
# A link is degraded if pinned copies reach less than this share of its usual rate. Pinned copies reach 80 to 88 % of a
# link's capacity.
HEALTHY_LINK_FROM = 0.8
MAX_SHOWN_NAME = 80
# If this share of the products' time moved from matrix units to vector units, the products are not the same.
MIN_MOVED_PRODUCTS = 0.25
# Regimes whose cost per step does not depend on the number of samples. The cost of making and copying batches does.
FIXED_PER_STEP = tuple(
    regime
    for regime in REGIMES
    if (regime.owner is Owner.HOST and regime is not Regime.INPUT) or regime is Regime.COMMUNICATION
)
CUDA_VERSIONS = ("cuda_runtime_version", "cuda_driver_version")


@dataclass(frozen=True, eq=False)
class ShortfallContext:
    """Both runs, and the times whose difference is explained: `expected` and `measured` time of B in ns by regime.

    The times are per `per` ("step" or "sample"). `scale` and `scale_a` convert step times of B and A to this unit.
    `samples` are the samples per step of A and B if they differ, otherwise None. `ratio` is (time of operators on the
    host in B / in A), or None if it is not known.
    """

    a: ComparedRun
    b: ComparedRun
    devices: DevicePair
    expected: dict[Regime, float]
    measured: dict[Regime, float]
    per: str
    scale: float  # factor from B's step time to the unit of the times
    scale_a: float
    samples: tuple[int, int] | None  # if the batch sizes differ
    ratio: float | None  # of operator times on the hosts, B / A

    def evidence(self, cause: str, regimes: tuple[Regime, ...], **values: Any) -> str:
        """Returns a sentence with the evidence for `cause` and the measured and expected times of `regimes`. `values`
        are further placeholders of the text."""
        template = shortfall_text(cause) or shortfall_text("known_cause")
        assert template is not None, "comparison_texts.toml has a text for causes without their own"
        measured, expected = (sum(times[regime] for regime in regimes) for times in (self.measured, self.expected))
        title = "the device's own work" if len(regimes) > 1 else Regime(regimes[0]).label_within
        values.setdefault("title", title)
        return template.safe_substitute(
            measured=time_text(measured), expected=time_text(expected), per=self.per, **values
        )


def shortfall_parts(shortfall: ShortfallContext) -> list[pb.Shortfall]:
    """Returns the parts of the shortfall by cause, the largest first and the unexplained part last.

    The shares are relative to the measured time. All shares sum to (measured - expected) / measured.
    """
    whole = sum(shortfall.measured.values())
    parts = _merged(_parts(shortfall, whole))
    unexplained = (whole - sum(shortfall.expected.values())) / whole - sum(part.share for part in parts)
    parts.sort(key=lambda part: -abs(part.share))
    template = shortfall_text("unexplained")
    because = template.safe_substitute() if template is not None else ""
    return [*parts, pb.Shortfall(cause="unexplained", share=unexplained, because=because, regime=Regime.UNEXPLAINED)]


def _merged(parts: Iterator[pb.Shortfall]) -> list[pb.Shortfall]:
    """Merges parts with the same cause into one part. The texts and the regime are those of the largest part."""
    by_cause: dict[str, list[pb.Shortfall]] = {}
    for part in parts:
        by_cause.setdefault(part.cause, []).append(part)
    merged = []
    for same_cause in by_cause.values():
        largest = max(same_cause, key=lambda part: abs(part.share))
        merged.append(pb.Shortfall(cause=largest.cause, because=largest.because, regime=largest.regime))
        merged[-1].share = sum(part.share for part in same_cause)
    return merged


def _parts(shortfall: ShortfallContext, whole: float) -> Iterator[pb.Shortfall]:
    """Yields the parts of the shortfall whose cause is known. `whole` is the measured time in ns."""
    for regime in REGIMES:
        share = (shortfall.measured[regime] - shortfall.expected[regime]) / whole
        if regime.owner in (Owner.HOST, Owner.LINK) and abs(share) >= MIN_SHORTFALL_SHARE:
            cause, because = _cause_of(shortfall, regime, share)
            yield pb.Shortfall(cause=cause, share=share, because=because, regime=regime)
    yield from _device(shortfall, whole)


def _cause_of(shortfall: ShortfallContext, regime: Regime, share: float) -> tuple[str, str]:
    """Returns the id of the cause of a difference in `regime`, and a sentence with the evidence. `regime` is a regime
    of the host, of copies or of collectives.

    `share` is (measured - expected time of the regime) / measured time of the step. If no cause is known, the id is
    that of the regime.
    """
    by_batch_size = _caused_by_batch_size(shortfall, regime, share)
    if by_batch_size is not None:
        return by_batch_size
    if regime in (Regime.LAUNCH, Regime.HOST) and shortfall.ratio is not None and _explains(shortfall.ratio, share):
        cause = "slower_host" if share > 0 else "faster_host"
        return cause, shortfall.evidence(cause, (regime,), ratio=f"{shortfall.ratio:.2f}")
    if regime == Regime.TRANSFER and share > 0 and (values := _slow_link(shortfall)) is not None:
        return "degraded_link", shortfall.evidence("degraded_link", (regime,), **values)
    findings = [finding for finding in shortfall.b.findings if finding.regime == regime]
    if share > 0 and findings:
        return findings[0].cause, shortfall.evidence("known_cause", (regime,))
    regime_cause = {Regime.INPUT: "starved", Regime.LAUNCH: "launch_bound"}.get(regime) if share > 0 else None
    return regime_cause or regime, shortfall.evidence(regime_cause or "no_cause", (regime,))


def _caused_by_batch_size(shortfall: ShortfallContext, regime: Regime, share: float) -> tuple[str, str] | None:
    """Returns the id of the cause "the batch size has changed" and a sentence with its evidence, or None.

    The batch size is a cause if the regime has a fixed cost per step, because this cost per sample is smaller with more
    samples per step. The sign of `share` (see _cause_of) must match: negative with more samples per step, positive with
    fewer.
    """
    if (
        shortfall.samples is None
        or regime not in FIXED_PER_STEP
        or (shortfall.samples[1] > shortfall.samples[0]) != (share < 0)
    ):
        return None
    cause = "batch_grown" if share < 0 else "batch_shrunk"
    return cause, shortfall.evidence(cause, (regime,), samples_a=shortfall.samples[0], samples_b=shortfall.samples[1])


def _explains(ratio: float, share: float) -> bool:
    """Returns True if the speed of the hosts explains the difference `share` between the measured and the expected time
    of B (positive: B is slower than expected).

    `ratio` is the time of operators on B's host divided by that on A's host. It must be at least HOST_DIFFERS_FROM if
    `share` is positive, and at most 1 / HOST_DIFFERS_FROM otherwise.
    """
    return ratio >= HOST_DIFFERS_FROM if share > 0 else ratio <= 1 / HOST_DIFFERS_FROM


def _slow_link(shortfall: ShortfallContext) -> dict[str, str] | None:
    """Returns the measured and the usual rate of B's link in GB/s as texts, if it is degraded; otherwise None."""
    rate, link = shortfall.b.measures(pinned_bandwidth), shortfall.devices.b.link
    if isinstance(rate, Missing) or link is None or rate.value >= HEALTHY_LINK_FROM * link * GIGA:
        return None
    return {"rate": f"{rate.value / GIGA:.1f}", "link": f"{link:.0f}"}


def _device(shortfall: ShortfallContext, whole: float) -> Iterator[pb.Shortfall]:
    """Yields one part for the difference in the device's own work, with the first cause that has evidence. Yields
    nothing if the difference is below MIN_SHORTFALL_SHARE or no cause has evidence. `whole` is the measured time in
    ns."""
    share = sum(shortfall.measured[regime] - shortfall.expected[regime] for regime in DEVICE_REGIMES) / whole
    if abs(share) < MIN_SHORTFALL_SHARE:
        return
    for find_part in (_throttled, _old_libraries, _units_unused, _other_kernels, _batch_not_grown):
        part = find_part(shortfall, share, whole)
        if part is not None:
            yield part
            return


def _throttled(shortfall: ShortfallContext, share: float, whole: float) -> pb.Shortfall | None:
    """Returns the part for a device that heat or a power limit slows down, or None. `share` is (measured - expected
    time of the device's own work) / measured time, `whole` the measured time in ns."""
    causes = ("thermal_throttle", "power_cap")
    finding = next((finding for finding in shortfall.b.findings if finding.cause in causes), None)
    if finding is None or share < 0:
        return None
    return pb.Shortfall(
        cause=finding.cause,
        share=share,
        because=shortfall.evidence("known_cause", DEVICE_REGIMES),
        regime=finding.regime,
    )


def _old_libraries(shortfall: ShortfallContext, share: float, whole: float) -> pb.Shortfall | None:
    """Returns the part for CUDA libraries that are older than B's device, or None. The arguments are as in
    _throttled."""
    header = shortfall.b.recording.trace.header
    facts = header.device(shortfall.b.recording.trace.device_index)
    versions = {key: version for key, version in header.versions.items() if key in CUDA_VERSIONS and version}
    if share < 0 or facts is None or facts.capability is None or not versions:
        return None
    needed, key = first_cuda(".".join(map(str, facts.capability))), min(versions, key=lambda key: versions[key])
    if needed is None or versions[key] >= needed:
        return None
    texts = {"version": version_text(key, versions[key]), "needed": version_text(key, needed)}
    because = shortfall.evidence("old_libraries", DEVICE_REGIMES, title=fact_titles()[key], **texts)
    return pb.Shortfall(cause="old_libraries", share=share, because=because, regime=Regime.COMPUTE)


def _units_unused(shortfall: ShortfallContext, share: float, whole: float) -> pb.Shortfall | None:
    """Returns the part for contractions that use matrix units in A, but vector units in B, or None. The arguments are
    as in _throttled."""
    vector_shares = [_on_vector_units(run.recording) for run in (shortfall.a, shortfall.b)]
    types = [run.measures(types_multiplied) for run in (shortfall.a, shortfall.b)]
    if (
        share < 0
        or vector_shares[1] - vector_shares[0] < MIN_MOVED_PRODUCTS
        or any(isinstance(text_or_missing, Missing) for text_or_missing in types)
    ):
        return None
    texts = [text_or_missing.text for text_or_missing in types if not isinstance(text_or_missing, Missing)]
    because = shortfall.evidence("tensor_cores_unused", DEVICE_REGIMES, types_a=texts[0], types=texts[1])
    return pb.Shortfall(cause="tensor_cores_unused", share=share, because=because, regime=Regime.COMPUTE)


def _on_vector_units(recording: Recording) -> float:
    """Returns the share (0 to 1) of the time of contractions that run in fp32 on vector units; 0 if there are none."""
    ops = recording.trace.device_ops
    rows = (ops.work == Work.CONTRACTION) & recording.in_window(ops.start)
    length = (ops.end - ops.start) * rows
    names = recording.trace.names
    plain = {name for name in np.unique(ops.name[rows]).tolist() if precision_of(names[name]) == VECTOR_FP32}
    return float(length[np.isin(ops.name, list(plain))].sum() / max(length.sum(), 1))


def _batch_not_grown(shortfall: ShortfallContext, share: float, whole: float) -> pb.Shortfall | None:
    """Returns the part for kernels that are too small to fill B's device, which has more multiprocessors than A's,
    although the batch size is the same; None if they do not explain half of the difference. The arguments are as in
    _throttled."""
    samples = [batch_size_of(run.recording) for run in (shortfall.a, shortfall.b)]
    a, b = shortfall.devices.a.multiprocessors, shortfall.devices.b.multiprocessors
    part = (shortfall.measured[Regime.UNDERFILLED] - shortfall.expected[Regime.UNDERFILLED]) / whole
    if (
        any(isinstance(batch, Missing) for batch in samples)
        or shortfall.samples is not None
        or not a
        or not b
        or a >= b
    ):
        return None
    if part < share / 2 or share < 0:
        return None
    count = next(batch.samples for batch in samples if not isinstance(batch, Missing))
    because = shortfall.evidence("batch_not_grown", (Regime.UNDERFILLED,), samples=count, b=b, a=a)
    return pb.Shortfall(cause="batch_not_grown", share=min(part, share), because=because, regime=Regime.UNDERFILLED)


def _other_kernels(shortfall: ShortfallContext, share: float, whole: float) -> pb.Shortfall | None:
    """Returns the part for operators that launch other kernels in B than in A, or None. The arguments are as in
    _throttled."""
    lengths = scaled_lengths(shortfall.a.recording, shortfall.devices, Estimate.EXPECTED)
    expected, measured = device_operators(shortfall.a.recording, lengths), device_operators(shortfall.b.recording)
    recorded = device_operators(shortfall.a.recording)
    differences = {
        name: measured[name].ns * shortfall.scale - expected[name].ns * shortfall.scale_a
        for name in expected.keys() & measured.keys()
        if recorded[name].runs_others(measured[name])
    }
    part = sum(differences.values()) / whole
    if not differences or part * share <= 0 or abs(part) < MIN_SHORTFALL_SHARE:
        return None
    part = max(min(part, abs(share)), -abs(share))  # overlapping kernels cannot differ by more than the device's work
    name = max(differences, key=lambda operator: abs(differences[operator]))
    kernels = {
        "kernel": sanitize(measured[name].kernel, MAX_SHOWN_NAME),
        "kernel_a": sanitize(recorded[name].kernel, MAX_SHOWN_NAME),
    }
    because = shortfall.evidence("other_kernels", DEVICE_REGIMES, operator=sanitize(name, MAX_SHOWN_NAME), **kernels)
    return pb.Shortfall(cause="other_kernels", share=part, because=because, regime=Regime.COMPUTE)


def shortfall_between(
    runs: tuple[ComparedRun, ComparedRun],
    devices: DevicePair,
    times: tuple[dict[Regime, float], dict[Regime, float]],
    per: str,
    samples: tuple[int, int] | None,
) -> ShortfallContext:
    """Returns the context in which the shortfall between two times is split into parts.

    `runs` are A and B. `times` has the expected and the measured time of B in ns by regime, per `per` ("step" or
    "sample"). `samples` are the samples per step of A and B if `per` is "sample", otherwise None.
    """
    a, b = runs
    scales = (1.0, 1.0) if per == "step" or samples is None else (1 / samples[0], 1 / samples[1])
    differ = samples if samples is not None and samples[0] != samples[1] else None
    ratio = host_ratio(a.recording, b.recording)
    return ShortfallContext(a, b, devices, times[0], times[1], per, scales[1], scales[0], differ, ratio)
