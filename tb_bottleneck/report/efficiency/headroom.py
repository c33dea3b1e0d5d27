"""What a run could still gain besides its findings: its situation, the next limit, other devices, and distances to
roofs (the highest rates that the device allows for a kernel).

Entries of headroom are not findings. An entry is left out if its cause is a finding, or if it is too small to matter.
"""

from collections.abc import Iterator

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.base.regime import DEVICE_REGIMES, Regime
from tb_bottleneck.knowledge.gpus import Gpu, gpu_named
from tb_bottleneck.knowledge.texts import headroom_label, headroom_text, words_for
from tb_bottleneck.measures.attention import unfused_attention_share
from tb_bottleneck.measures.efficiency.headroom import (
    all_reduce_ns,
    distances,
    gradient_bytes,
    larger_device,
    layout_share,
    recorded_parameter_bytes,
    traffic_share,
)
from tb_bottleneck.measures.kind_of_work import backward_recorded
from tb_bottleneck.measures.measure_set import MeasureFunction, Measures
from tb_bottleneck.measures.trace.fusion import pointwise_share
from tb_bottleneck.measures.trace.kernel_efficiency import misaligned_products, roofs_known
from tb_bottleneck.measures.trace.loader import loader_fetch
from tb_bottleneck.roofline.device_peaks import data_sheet_of
from tb_bottleneck.schema import bottleneck_pb2 as pb

# Smallest share of the time that matters. Steps differ by more than a smaller share.
MIN_SHARE = 0.02
# From this share of the time on, collectives are the next limit, even if kernels run in parallel with them. Chosen.
MIN_TRAFFIC = 0.5
# If the roof is known for a smaller share of the kernel time, the distances say little about the run.
MIN_ROOFS_KNOWN = 0.5
# Fused pointwise operators read and write half as many bytes (regimes/memory.py).
OF_POINTWISE = 0.5

_SMALL_FIXES: dict[str, tuple[str, MeasureFunction[Recording], float]] = {
    "attention": ("unfused_attention", unfused_attention_share, 1.0),
    "pointwise": ("unfused_pointwise", pointwise_share, OF_POINTWISE),
    "alignment": ("misaligned_shapes", misaligned_products, 1.0),
    "layout": ("fp32_activations", layout_share, 1.0),
}
"""Maps the kind of an entry to the cause with the same fix, the measure of the time (a share), and the part of this
time that the fix saves."""

Fact = tuple[str, float | str, str]
"""(key of the label, value, unit)."""


def headroom_of(report: pb.Report, recording: Recording | None, parameters: float | None = None) -> list[pb.Headroom]:
    """Returns the entries of headroom; empty if it is not known what limits the run.

    If a problem was found, only entries that are independent of the findings are returned. `recording` is None for
    telemetry: then the entries are the next limit and, if the bytes of `parameters` are known, more devices.
    """
    if report.verdict.regime == Regime.UNEXPLAINED:
        return []
    if report.verdict.severity != "none":
        return [] if recording is None else list(_small_fixes(report, Measures(recording), ("layout",)))
    found = _of_telemetry(report, parameters) if recording is None else _of_trace(report, recording)
    said = words_for(report.device.kind)
    for row in (row for each in found for row in each.evidence):
        row.label = said(row.label)
    return found


def _of_telemetry(report: pb.Report, parameters: float | None) -> list[pb.Headroom]:
    found = list(_next_limit(report))
    if parameters is not None and report.device.kind in ("cuda", "rocm") and report.world_size <= 1:
        found.append(_more_devices("parameters", parameters, gpu_named(report.device.name)))
    return found


def _of_trace(report: pb.Report, recording: Recording) -> list[pb.Headroom]:
    measures = Measures(recording)
    found = [_situation(measures), *_next_limit(report)]
    if recording.on_device:
        found += [
            *_hidden_traffic(recording),
            *_larger_device(recording),
            *_more_devices_for(recording, measures),
            *_operators(recording, measures),
        ]
    found += _small_fixes(report, measures, tuple(_SMALL_FIXES))
    return found


def _small_fixes(report: pb.Report, measures: Measures[Recording], kinds: tuple[str, ...]) -> Iterator[pb.Headroom]:
    """Yields entries about small fixes: those of `kinds` that save at least the fraction MIN_SHARE of the time, and
    whose cause is not a finding."""
    causes = {finding.cause for finding in report.findings}
    for kind in kinds:
        cause, measure, part = _SMALL_FIXES[kind]
        share = measures.value(measure, otherwise=0.0)
        if cause not in causes and part * share >= MIN_SHARE:
            yield _headroom(kind, [(f"{kind}_share", share, "share")], share=part * share)


def _next_limit(report: pb.Report) -> Iterator[pb.Headroom]:
    """Yields an entry about the regime with the most time, except the verdict's regime, if it has at least the fraction
    MIN_SHARE of the time."""
    now = report.verdict.regime
    others = [row for row in report.account if row.regime not in (now, Regime.UNEXPLAINED)]
    following = max(others, key=lambda row: row.share, default=None)
    if following is not None and following.share >= MIN_SHARE:
        values = {"next": following.title.lower(), "now": report.verdict.title.lower()}
        yield _headroom("next_limit", [("next_share", following.share, "share")], values=values)


def _hidden_traffic(recording: Recording) -> Iterator[pb.Headroom]:
    """Yields an entry if collectives run for at least the fraction MIN_TRAFFIC of the time. A faster device does not
    shorten them."""
    hidden = traffic_share(recording)
    if hidden >= MIN_TRAFFIC:
        yield _headroom("traffic", [("traffic_share", hidden, "share")])


def _situation(measures: Measures[Recording]) -> pb.Headroom:
    account = measures.account
    facts: list[Fact] = [("full_size", account.share(Regime.COMPUTE) + account.share(Regime.MEMORY), "share")]
    if measures.on_device:
        facts.append(("underfilled", account.share(Regime.UNDERFILLED), "share"))
    facts.append(("outside", max(1.0 - sum(account.share(regime) for regime in DEVICE_REGIMES), 0.0), "share"))
    fetch = measures(loader_fetch)
    if isinstance(fetch, Measure):
        facts.append(("loading", fetch.value * measures.steps / account.window, "share"))
    return _headroom("situation", facts)


def _larger_device(recording: Recording) -> Iterator[pb.Headroom]:
    larger = larger_device(recording)
    if isinstance(larger, Missing):
        return
    facts: list[Fact] = [
        ("arithmetic", larger.arithmetic, "count"),
        ("bandwidth", larger.bandwidth, "count"),
        ("unchanged", larger.unchanged, "share"),
    ]
    yield _headroom("larger_device", facts, speedup=larger.speedup, values={"device": larger.name})


def _more_devices_for(recording: Recording, measures: Measures[Recording]) -> Iterator[pb.Headroom]:
    """Yields an entry about the cost of exchanging gradients among more devices; only for a training on one device."""
    if (recording.trace.header.world_size or 1) > 1 or isinstance(measures(backward_recorded), Missing):
        return
    known = data_sheet_of(recording.trace)
    sizes = {"gradients": gradient_bytes(recording), "parameters": recorded_parameter_bytes(recording)}
    name, size = next(((name, size.value) for name, size in sizes.items() if isinstance(size, Measure)), ("", None))
    yield _more_devices(name, size, None if known is None else known[0])


def _more_devices(name: str, size: float | None, gpu: Gpu | None) -> pb.Headroom:
    """Returns the entry about more devices. `name` is "gradients" or "parameters", and `size` the size of these in
    bytes, which is equal for both; None if it is not known. `gpu` has the data sheet of the device, or is None."""
    if size is None:
        return _headroom("more_devices", [])
    exchange = all_reduce_ns(gpu, size)
    facts: list[Fact] = [(name, size, "bytes")]
    if isinstance(exchange, Measure):
        facts.append(("all_reduce", exchange.value, "ns"))
    return _headroom("more_devices", facts)


def _operators(recording: Recording, measures: Measures[Recording]) -> Iterator[pb.Headroom]:
    if measures.value(roofs_known, otherwise=0.0) < MIN_ROOFS_KNOWN:
        yield _headroom("no_roofline", [])
        return
    for distance in distances(recording):
        if distance.beyond < MIN_SHARE:
            return
        facts: list[Fact] = [
            ("operator", distance.operator, "text"),
            ("kernel", distance.kernel, "text"),
            ("share", distance.share, "share"),
            (f"roof_{distance.roof}", distance.reached, "share"),
        ]
        yield _headroom("operator", facts, share=distance.beyond)


def _headroom(
    kind: str,
    facts: list[Fact],
    *,
    share: float | None = None,
    speedup: float | None = None,
    values: dict[str, str] | None = None,
) -> pb.Headroom:
    title, summary = headroom_text(kind, values or {})
    message = pb.Headroom(kind=kind, title=title, summary=summary, share=share, speedup=speedup)
    for name, value, unit in facts:
        row = message.evidence.add(label=headroom_label(name), unit=unit)
        if isinstance(value, str):
            row.text = value
        else:
            row.value = value
    return message
