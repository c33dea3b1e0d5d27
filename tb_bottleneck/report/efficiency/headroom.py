"""What a run without a problem could still gain: small fixes, and more devices.

Entries of headroom are not findings. An entry is left out if its cause is a finding, or if it is too small to matter.
"""

from collections.abc import Iterator

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.compute.kernel_efficiency import misaligned_products
from tb_bottleneck.bottlenecks.memory.attention import unfused_attention_share
from tb_bottleneck.bottlenecks.memory.fusion import pointwise_share
from tb_bottleneck.bottlenecks.memory.layout import layout_conversions
from tb_bottleneck.knowledge.gpus import USABLE_LINK_SHARE, Gpu, gpu_named, lane_rates
from tb_bottleneck.knowledge.texts import headroom_label, headroom_text, words_for
from tb_bottleneck.measures.kind_of_work import backward_recorded
from tb_bottleneck.measures.measure_set import MeasureFunction, Measures
from tb_bottleneck.measures.trace.own_kernels import own_kernel_name, own_kernel_reach, own_kernel_share
from tb_bottleneck.measures.trace.window_rows import in_host_steps
from tb_bottleneck.memory.weights import weights_read
from tb_bottleneck.roofline.device_peaks import data_sheet_of
from tb_bottleneck.roofline.operator_args import itemsize
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.trace.forward_links import ACCUMULATION
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.process_facts import parameter_bytes

# Smallest share of the time that matters. Steps differ by more than a smaller share.
MIN_SHARE = 0.02
# Fused pointwise operators read and write half as many bytes (bottlenecks/memory/rule.py).
OF_POINTWISE = 0.5
ALL_REDUCE_DEVICES = 8  # of one machine

_SMALL_FIXES: dict[str, tuple[frozenset[str], MeasureFunction[Recording], float]] = {
    "attention": (frozenset(("unfused_attention",)), unfused_attention_share, 1.0),
    "pointwise": (frozenset(("unfused_pointwise",)), pointwise_share, OF_POINTWISE),
    "alignment": (frozenset(("misaligned_shapes",)), misaligned_products, 1.0),
    "layout": (frozenset(("fp32_activations", "memory_format")), layout_conversions, 1.0),
}
"""Maps the kind of an entry to the causes with the same fix, the measure of the time (a share), and the part of this
time that the fix saves."""


def headroom_of(report: pb.Report, recording: Recording | None, parameters: float | None = None) -> list[pb.Headroom]:
    """Returns the entries of headroom.

    If a problem was found, or it is not known what limits the run, only entries that are independent of the findings
    are returned: about layouts and own kernels. `recording` is None for telemetry, which has an entry about more
    devices if the bytes of `parameters` are known.
    """
    unknown = report.verdict.regime == Regime.UNEXPLAINED
    limited = unknown or report.verdict.severity != "none"
    found: list[pb.Headroom] = []
    if recording is not None:
        measures = Measures(recording)
        if not limited and recording.on_device:
            found += _more_devices_for(recording, measures)
        if not unknown:
            found += _small_fixes(report, measures, ("layout",) if limited else tuple(_SMALL_FIXES))
        if recording.on_device:
            found += _own_kernels(measures)
    elif not limited and parameters is not None and report.device.kind in ("cuda", "rocm") and report.world_size <= 1:
        found.append(_more_devices("parameters", parameters, gpu_named(report.device.name)))
    said = words_for(report.device.kind)
    for row in (row for each in found for row in each.evidence):
        row.label = said(row.label)
    return found


def _small_fixes(report: pb.Report, measures: Measures[Recording], kinds: tuple[str, ...]) -> Iterator[pb.Headroom]:
    """Yields entries about small fixes: those of `kinds` that save at least the fraction MIN_SHARE of the time, and
    whose cause is not a finding."""
    found = {finding.cause for finding in report.findings}
    for kind in kinds:
        causes, measure, part = _SMALL_FIXES[kind]
        share = measures.value(measure, otherwise=0.0)
        if not causes & found and part * share >= MIN_SHARE:
            yield _headroom(kind, [(f"{kind}_share", share, "share")], share=part * share)


def _own_kernels(measures: Measures[Recording]) -> Iterator[pb.Headroom]:
    """Yields an entry about kernels that the program brings itself, if they take at least MIN_SHARE of the time."""
    share = measures.value(own_kernel_share, otherwise=0.0)
    if share < MIN_SHARE:
        return
    entry = _headroom("own_kernels", [("own_kernel_share", share, "share")])
    reach, name = measures(own_kernel_reach), measures(own_kernel_name)
    if isinstance(reach, Measure):
        entry.evidence.add(label=headroom_label("own_kernel_reach"), unit="share", value=reach.value)
    if isinstance(name, Measure):
        entry.evidence.add(label=headroom_label("own_kernel_name"), unit="text", text=name.text)
    yield entry


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
    facts = [(name, size, "bytes")]
    if isinstance(exchange, Measure):
        facts.append(("all_reduce", exchange.value, "ns"))
    return _headroom("more_devices", facts)


def _headroom(kind: str, facts: list[tuple[str, float, str]], share: float | None = None) -> pb.Headroom:
    """Returns an entry. `facts` has (key of the label, value, unit) for each row of its evidence."""
    title, summary = headroom_text(kind)
    message = pb.Headroom(kind=kind, title=title, summary=summary, share=share)
    for name, value, unit in facts:
        message.evidence.add(label=headroom_label(name), unit=unit, value=value)
    return message


def gradient_bytes(recording: Recording) -> Measure | Missing:
    """Bytes of the gradients per step, from the recorded shapes of the gradients that autograd accumulates."""
    trace, events = recording.trace, recording.trace.events
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[in_host_steps(recording, events.start[rows])]
    rows = rows[name_matches(trace.names, events.name[rows], ACCUMULATION.__eq__)]
    signatures, counts = np.unique(events.signature[rows], return_counts=True)
    total = 0
    for signature, count in zip(signatures.tolist(), counts.tolist(), strict=True):
        operands = operands_of(trace.signatures[signature]) if signature else None
        size = itemsize(operands.types[0]) if operands is not None and operands.types and operands.dims else None
        if operands is None or size is None:
            return Missing("the shapes of the gradients were not recorded")
        total += count * size * int(np.prod(operands.dims[0]))
    if not total:
        return Missing("no gradient was recorded")
    return Measure(total / len(recording.steps), "bytes", "step", len(rows))


def recorded_parameter_bytes(recording: Recording) -> Measure | Missing:
    """Bytes of the model's parameters, as the training process counted them; otherwise, bytes of the weights that the
    recorded modules read."""
    counted = parameter_bytes(recording.trace.header.context.get("parameters_by_dtype"))
    if counted is not None:
        return Measure(counted, "bytes", source="context")
    read = weights_read(recording.trace)
    return (
        Measure(float(read), "bytes") if read else Missing("neither parameters nor modules with shapes were recorded")
    )


def all_reduce_ns(gpu: Gpu | None, size: float) -> Measure | Missing:
    """Shortest time (ns) of an all-reduce of `size` bytes among ALL_REDUCE_DEVICES devices of the kind `gpu` in one
    machine.

    A ring of n devices sends 2 (n - 1) / n times the bytes over each link (nccl-tests, doc/PERFORMANCE.md).
    """
    rate = _link_rate(gpu) if gpu is not None else None
    if rate is None:
        return Missing("the link between the devices is not known")
    sent = 2 * (ALL_REDUCE_DEVICES - 1) / ALL_REDUCE_DEVICES * size
    return Measure(sent / rate, "ns", "step")  # GB/s are bytes per ns


def _link_rate(gpu: Gpu) -> float | None:
    """Returns the rate of the link between two devices of the kind `gpu` in GB/s: of NVLink, or else of PCIe. Returns
    None if the rate is not known."""
    if gpu.nvlink is not None:
        return gpu.nvlink
    lane = lane_rates().get(gpu.pcie.generation or 0)
    return lane * (gpu.pcie.lanes or 0) * USABLE_LINK_SHARE if lane and gpu.pcie.lanes else None
