"""What B's time and the promise differ by, regime by regime, each part with the name that the evidence gives it.

The device's own regimes are taken together: a kernel may be bound by another roof on another device.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.comparison.devices.device_model import VECTOR_FP32
from tb_bottleneck.comparison.devices.kernel_scaling import DevicePair, scaled_lengths
from tb_bottleneck.comparison.runs.compared_run import ComparedRun
from tb_bottleneck.comparison.texts.sanitize import sanitize
from tb_bottleneck.comparison.texts.speedup import time_text
from tb_bottleneck.comparison.workload.batch_size import batch_size_of
from tb_bottleneck.comparison.workload.environment import version_text
from tb_bottleneck.comparison.workload.operator_time import device_operators, host_ratio
from tb_bottleneck.knowledge.comparison_texts import fact_titles, first_cuda, shortfall_text
from tb_bottleneck.knowledge.gpus import GIGA
from tb_bottleneck.knowledge.precisions import precision_of
from tb_bottleneck.measure import Missing
from tb_bottleneck.measures.trace.copies import pinned_bandwidth
from tb_bottleneck.measures.trace.kernel_efficiency import types_multiplied
from tb_bottleneck.regime import DEVICE_REGIMES, REGIMES, Regime
from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.trace.device_ops import Work

# Smaller parts of B's time are summed up as unexplained: a list of crumbs explains nothing.
MIN_SHORTFALL_SHARE = 0.02
# The same operators on one host differ by up to 7 % between public recordings of one model (median of operators).
HOST_DIFFERS_FROM = 1.15
# Pinned copies reach 80 to 88 % of what a link can carry; well below that the link is not what it should be.
HEALTHY_LINK_FROM = 0.8
MAX_SHOWN_NAME = 80
# Products of which this share of their time moved from matrix units to ordinary ones are not the same products.
MIN_MOVED_PRODUCTS = 0.25
# What a step costs however many samples it works on; making and copying them is not among it.
FIXED_PER_STEP = (Regime.SYNC, Regime.LAUNCH, Regime.HOST, Regime.ALLOCATOR, Regime.INTERRUPTION, Regime.COMMUNICATION)
CUDA_VERSIONS = ("cuda_runtime_version", "cuda_driver_version")


@dataclass(frozen=True, eq=False)
class Shortfall:
    """Both sides, and the times to be explained: per step or sample, in ns by regime."""

    a: ComparedRun
    b: ComparedRun
    move: DevicePair
    expected: dict[Regime, float]
    measured: dict[Regime, float]
    per: str
    scale: float  # from B's step to what times are per
    scale_a: float
    samples: tuple[int, int] | None  # where the batches differ
    ratio: float | None  # of the hosts

    def words(self, cause: str, regimes: tuple[Regime, ...], **more: Any) -> str:
        """The evidence for a cause, in words."""
        template = shortfall_text(cause) or shortfall_text("found")
        assert template is not None, "comparison.toml has the words for what has none of its own"
        measured, expected = (sum(times[one] for one in regimes) for times in (self.measured, self.expected))
        title = "the device's own work" if len(regimes) > 1 else Regime(regimes[0]).label.lower()
        more.setdefault("title", title)
        return template.safe_substitute(
            measured=time_text(measured), expected=time_text(expected), per=self.per, **more
        )


def shortfall_parts(gap: Shortfall) -> list[pb.Shortfall]:
    """The parts, largest first; the shares sum to (measured - expected) / measured exactly as far as doubles go."""
    whole = sum(gap.measured.values())
    parts = _merged(_parts(gap, whole))
    left = (whole - sum(gap.expected.values())) / whole - sum(part.share for part in parts)
    parts.sort(key=lambda part: -abs(part.share))
    template = shortfall_text("unexplained")
    because = template.safe_substitute() if template is not None else ""
    return [*parts, pb.Shortfall(cause="unexplained", share=left, because=because, regime=Regime.UNEXPLAINED)]


def _merged(parts: Iterator[pb.Shortfall]) -> list[pb.Shortfall]:
    """Regimes that differ for one cause make one part, told by the largest of them."""
    by_cause: dict[str, list[pb.Shortfall]] = {}
    for part in parts:
        by_cause.setdefault(part.cause, []).append(part)
    merged = []
    for ones in by_cause.values():
        largest = max(ones, key=lambda one: abs(one.share))
        merged.append(pb.Shortfall(cause=largest.cause, because=largest.because, regime=largest.regime))
        merged[-1].share = sum(one.share for one in ones)
    return merged


def _parts(gap: Shortfall, whole: float) -> Iterator[pb.Shortfall]:
    """The named parts."""
    for regime in REGIMES:
        share = (gap.measured[regime] - gap.expected[regime]) / whole
        if regime not in (*DEVICE_REGIMES, Regime.UNEXPLAINED) and abs(share) >= MIN_SHORTFALL_SHARE:
            cause, because = _named(gap, regime, share)
            yield pb.Shortfall(cause=cause, share=share, because=because, regime=regime)
    yield from _device(gap, whole)


def _named(gap: Shortfall, regime: Regime, share: float) -> tuple[str, str]:
    """The cause of a difference in a regime of the host, of copies or of collectives."""
    shared = _shared_by_samples(gap, regime, share)
    if shared is not None:
        return shared
    if regime in (Regime.LAUNCH, Regime.HOST) and gap.ratio is not None and _explains(gap.ratio, share):
        cause = "slower_host" if share > 0 else "faster_host"
        return cause, gap.words(cause, (regime,), ratio=f"{gap.ratio:.2f}")
    if regime == Regime.TRANSFER and share > 0 and (slow := _slow_link(gap)) is not None:
        return "degraded_link", gap.words("degraded_link", (regime,), **slow)
    found = [finding for finding in gap.b.findings if finding.regime == regime]
    if share > 0 and found:
        return found[0].cause, gap.words("found", (regime,))
    generic = {Regime.INPUT: "starved", Regime.LAUNCH: "launch_bound"}.get(regime) if share > 0 else None
    return generic or regime, gap.words(generic or "more", (regime,))


def _shared_by_samples(gap: Shortfall, regime: Regime, share: float) -> tuple[str, str] | None:
    """The number of samples as the cause: of what a step costs once each of many bears less, and each of few more."""
    if gap.samples is None or regime not in FIXED_PER_STEP or (gap.samples[1] > gap.samples[0]) != (share < 0):
        return None
    cause = "batch_grown" if share < 0 else "batch_shrunk"
    return cause, gap.words(cause, (regime,), samples_a=gap.samples[0], samples_b=gap.samples[1])


def _explains(ratio: float, share: float) -> bool:
    """Whether the speed of the hosts points the way in which the time differs."""
    return ratio >= HOST_DIFFERS_FROM if share > 0 else ratio <= 1 / HOST_DIFFERS_FROM


def _slow_link(gap: Shortfall) -> dict[str, str] | None:
    rate, link = gap.b.measures(pinned_bandwidth), gap.move.b.link
    if isinstance(rate, Missing) or link is None or rate.value >= HEALTHY_LINK_FROM * link * GIGA:
        return None
    return {"rate": f"{rate.value / GIGA:.1f}", "link": f"{link:.0f}"}


def _device(gap: Shortfall, whole: float) -> Iterator[pb.Shortfall]:
    """What the device's own work differs by: named by the first cause that has evidence, else left unexplained."""
    share = sum(gap.measured[regime] - gap.expected[regime] for regime in DEVICE_REGIMES) / whole
    if abs(share) < MIN_SHORTFALL_SHARE:
        return
    for told in (_throttled, _old_libraries, _units_unused, _other_kernels, _batch_not_grown):
        found = told(gap, share, whole)
        if found is not None:
            yield found
            return


def _throttled(gap: Shortfall, share: float, whole: float) -> pb.Shortfall | None:
    causes = ("thermal_throttle", "power_cap")
    found = next((finding for finding in gap.b.findings if finding.cause in causes), None)
    if found is None or share < 0:
        return None
    return pb.Shortfall(cause=found.cause, share=share, because=gap.words("found", DEVICE_REGIMES), regime=found.regime)


def _old_libraries(gap: Shortfall, share: float, whole: float) -> pb.Shortfall | None:
    header = gap.b.recording.trace.header
    facts = header.device(gap.b.recording.trace.device_index)
    versions = {key: version for key, version in header.versions.items() if key in CUDA_VERSIONS and version}
    if share < 0 or facts is None or facts.capability is None or not versions:
        return None
    needed, key = first_cuda(".".join(map(str, facts.capability))), min(versions, key=lambda key: versions[key])
    if needed is None or versions[key] >= needed:
        return None
    texts = {"version": version_text(key, versions[key]), "needed": version_text(key, needed)}
    because = gap.words("old_libraries", DEVICE_REGIMES, title=fact_titles()[key], **texts)
    return pb.Shortfall(cause="old_libraries", share=share, because=because, regime=Regime.COMPUTE)


def _units_unused(gap: Shortfall, share: float, whole: float) -> pb.Shortfall | None:
    """Products that ran on A's matrix units and run on B's ordinary ones."""
    full = [_on_ordinary_units(run.recording) for run in (gap.a, gap.b)]
    types = [run.measures(types_multiplied) for run in (gap.a, gap.b)]
    if share < 0 or full[1] - full[0] < MIN_MOVED_PRODUCTS or any(isinstance(one, Missing) for one in types):
        return None
    texts = [one.text for one in types if not isinstance(one, Missing)]
    because = gap.words("tensor_cores_unused", DEVICE_REGIMES, types_a=texts[0], types=texts[1])
    return pb.Shortfall(cause="tensor_cores_unused", share=share, because=because, regime=Regime.COMPUTE)


def _on_ordinary_units(recording: Recording) -> float:
    """Share of the products' own time that they spend in fp32 on ordinary units; 0 where there are none."""
    ops = recording.trace.device_ops
    rows = (ops.work == Work.CONTRACTION) & recording.in_window(ops.start)
    length = (ops.end - ops.start) * rows
    names = recording.trace.names
    plain = {name for name in np.unique(ops.name[rows]).tolist() if precision_of(names[name]) == VECTOR_FP32}
    return float(length[np.isin(ops.name, list(plain))].sum() / max(length.sum(), 1))


def _batch_not_grown(gap: Shortfall, share: float, whole: float) -> pb.Shortfall | None:
    """As many samples as on A, in kernels that leave more of B idle than its size alone foretells."""
    samples = [batch_size_of(run.recording) for run in (gap.a, gap.b)]
    a, b = gap.move.a.multiprocessors, gap.move.b.multiprocessors
    part = (gap.measured[Regime.UNDERFILLED] - gap.expected[Regime.UNDERFILLED]) / whole
    if any(isinstance(one, Missing) for one in samples) or gap.samples is not None or not a or not b or a >= b:
        return None
    if part < share / 2 or share < 0:
        return None
    count = next(one.samples for one in samples if not isinstance(one, Missing))
    because = gap.words("batch_not_grown", (Regime.UNDERFILLED,), samples=count, b=b, a=a)
    return pb.Shortfall(cause="batch_not_grown", share=min(part, share), because=because, regime=Regime.UNDERFILLED)


def _other_kernels(gap: Shortfall, share: float, whole: float) -> pb.Shortfall | None:
    """Operators that run another kernel on B: what they differ from the promise by."""
    lengths = scaled_lengths(gap.a.recording, gap.move, Estimate.EXPECTED)
    expected, measured = device_operators(gap.a.recording, lengths), device_operators(gap.b.recording)
    recorded = device_operators(gap.a.recording)
    moved = {
        name: measured[name].ns * gap.scale - expected[name].ns * gap.scale_a
        for name in expected.keys() & measured.keys()
        if recorded[name].runs_others(measured[name])
    }
    part = sum(moved.values()) / whole
    if not moved or part * share <= 0 or abs(part) < MIN_SHORTFALL_SHARE:
        return None
    part = max(min(part, abs(share)), -abs(share))  # kernels that overlap cannot differ by more than the device's work
    name = max(moved, key=lambda one: abs(moved[one]))
    kernels = {
        "kernel": sanitize(measured[name].kernel, MAX_SHOWN_NAME),
        "kernel_a": sanitize(recorded[name].kernel, MAX_SHOWN_NAME),
    }
    because = gap.words("other_kernels", DEVICE_REGIMES, operator=sanitize(name, MAX_SHOWN_NAME), **kernels)
    return pb.Shortfall(cause="other_kernels", share=part, because=because, regime=Regime.COMPUTE)


def shortfall_between(
    runs: tuple[ComparedRun, ComparedRun],
    move: DevicePair,
    times: tuple[dict[Regime, float], dict[Regime, float]],
    per: str,
    samples: tuple[int, int] | None,
) -> Shortfall:
    """The gap between `times`: what was expected, and what was measured, per step or sample."""
    a, b = runs
    scales = (1.0, 1.0) if per == "step" or samples is None else (1 / samples[0], 1 / samples[1])
    differ = samples if samples is not None and samples[0] != samples[1] else None
    ratio = host_ratio(a.recording, b.recording)
    return Shortfall(a, b, move, times[0], times[1], per, scales[1], scales[0], differ, ratio)
