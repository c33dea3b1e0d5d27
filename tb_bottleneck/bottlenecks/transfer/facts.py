"""Measures of copies between host and device: their size, the kind of host memory, and how well they use the link."""

from dataclasses import replace

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.arrays import percentile
from tb_bottleneck.base.intervals import intersect, union
from tb_bottleneck.base.measure import Measure, Missing, text_measure
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.base.units import NS_PER_S
from tb_bottleneck.knowledge.gpus import GIGA, USABLE_LINK_SHARE, gpu_named, lane_rates, link_text
from tb_bottleneck.measures.trace.window_rows import device_work, with_example
from tb_bottleneck.roofline.device_peaks import calibration
from tb_bottleneck.trace.device_ops import DeviceOps, Work
from tb_bottleneck.trace.kernel_names import name_matches

NO_DEVICE = Missing("the work ran on the CPU: there are no copies to a device")
# Smaller copies are limited by their latency, not by the link; from 1 MiB a PCIe link is near its rate.
LARGE_COPY_BYTES = 1 << 20
# The fastest copies show the link's rate. Slower copies share the link with other devices or with copies in the other
# direction.
BEST_PERCENTILE = 90
MIN_COPIES = 3
# PCI-SIG defines links of at most 32 lanes. The context of a trace is untrusted, so larger numbers are ignored.
MAX_LANES = 32


def host_copies(recording: Recording) -> Measure | Missing:
    """Bytes per step copied between host and device, in both directions."""
    if not recording.on_device:
        return NO_DEVICE
    ops = device_work(recording, Work.UPLOAD, Work.DOWNLOAD)
    return with_example(float(ops.bytes.sum()) / len(recording.steps), "bytes", "step", ops.start, ops.end)


def pageable_copies(recording: Recording) -> Measure | Missing:
    """Bytes per step copied to the device from memory that is not pinned. ROCm does not record the kind of memory."""
    ops = device_work(recording, Work.UPLOAD, Work.DOWNLOAD)
    kind_known = name_matches(recording.trace.names, ops.name, lambda name: "Pageable" in name or "Pinned" in name)
    if not kind_known.any():
        return Missing("the recording does not distinguish pinned from pageable memory")
    ops = _uploads(recording, "Pageable")
    return with_example(float(ops.bytes.sum()) / len(recording.steps), "bytes", "step", ops.start, ops.end)


def copy_back_share(recording: Recording) -> Measure | Missing:
    """Share of the exposed copy time (the time of the regime `transfer`) in which copies to the host run."""
    if not recording.on_device:
        return NO_DEVICE
    ops, exposed = device_work(recording, Work.DOWNLOAD), recording.account.ns[Regime.TRANSFER]
    back = intersect(recording.busy[Regime.TRANSFER], union(ops.start, ops.end))
    return with_example(back.total() / max(exposed, 1), "share", "copies", ops.start, ops.end)


def bytes_copied_back(recording: Recording) -> Measure | Missing:
    """Bytes per step copied to the host."""
    if not recording.on_device:
        return NO_DEVICE
    ops = device_work(recording, Work.DOWNLOAD)
    return with_example(float(ops.bytes.sum()) / len(recording.steps), "bytes", "step", ops.start, ops.end)


def copies_to_device(recording: Recording) -> Measure | Missing:
    """Number of copies to the device per step."""
    if not recording.on_device:
        return NO_DEVICE
    ops = device_work(recording, Work.UPLOAD)
    return with_example(len(ops) / len(recording.steps), "count", "step", ops.start, ops.end)


def pinned_bandwidth(recording: Recording) -> Measure | Missing:
    """Bytes per second of the fastest large copies from pinned memory to the device: the percentile BEST_PERCENTILE of
    the rates of all copies of at least LARGE_COPY_BYTES."""
    return _bandwidth(recording, "Pinned")


def pageable_bandwidth(recording: Recording) -> Measure | Missing:
    """Bytes per second of the fastest large copies from pageable memory to the device; see `pinned_bandwidth`."""
    return _bandwidth(recording, "Pageable")


def link_bandwidth(recording: Recording) -> Measure | Missing:
    """Bytes per second that copies from pinned memory should reach: the calibrated rate of this machine if it is at
    most the link's raw rate, or else USABLE_LINK_SHARE of the raw rate.

    The raw rate is the rate of the slot that the monitor recorded, or else the rate of the fastest slot that the
    device supports according to its data sheet. Missing if the raw rate is not known.
    """
    rate = _recorded_slot_rate(recording) or slot_rate(recording)
    measured = calibration(recording.trace).get("h2d_pinned_bytes_per_s", 0.0)
    if rate is not None and 0 < measured <= rate:
        return Measure(measured, "bytes_per_s", "", source="context")
    if rate is None:
        return Missing("the link of this device is not known")
    return Measure(rate * USABLE_LINK_SHARE, "bytes_per_s")


def recorded_link(recording: Recording) -> Measure | Missing:
    """Generation and number of lanes of the PCIe link under load, and whether a faster link is possible, as text."""
    generation, lanes = (_link_fact(recording, name) for name in ("link_generation", "link_width"))
    if generation is None or lanes is None:
        return Missing("the link's generation and width were not recorded; the monitor records them")
    highest = _link_fact(recording, "link_generation_max"), _link_fact(recording, "link_width_max")
    maximum = None if highest[0] is None or highest[1] is None else (highest[0], highest[1])
    of_device = _link_fact(recording, "link_generation_gpu_max")
    return replace(text_measure(link_text((generation, lanes), maximum, of_device)), source="context")


def _recorded_slot_rate(recording: Recording) -> float | None:
    """Returns the raw rate of the device's slot in bytes per second, or None if the monitor did not record the slot's
    maximum generation and lanes."""
    lane = lane_rates().get(_link_fact(recording, "link_generation_max") or 0)
    lanes = _link_fact(recording, "link_width_max")
    return None if lane is None or lanes is None else lane * lanes * GIGA


def _link_fact(recording: Recording, name: str) -> int | None:
    """Returns the fact `name` about the PCIe link, which the training process added to the trace (Header.context).
    Returns None if it is not an integer from 1 to MAX_LANES."""
    value = recording.trace.header.context.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_LANES else None


def slot_rate(recording: Recording) -> float | None:
    """Returns the rate in bytes per second of the fastest PCIe link of the device, before protocol overhead.
    Returns None if the device or its link is not in the device table."""
    facts = recording.trace.header.device(recording.trace.device_index)
    gpu = gpu_named(facts.name) if facts is not None else None
    lane = lane_rates().get(gpu.pcie.generation or 0) if gpu is not None else None
    return None if gpu is None or lane is None or not gpu.pcie.lanes else lane * gpu.pcie.lanes * GIGA


def _bandwidth(recording: Recording, memory: str) -> Measure | Missing:
    """Returns the rate of the fastest large copies to the device. `memory` is the kind of host memory: "Pinned" or
    "Pageable"."""
    ops = _uploads(recording, memory)
    ops = ops.take((ops.bytes >= LARGE_COPY_BYTES) & (ops.end > ops.start))
    if len(ops) < MIN_COPIES:
        return Missing(f"fewer than {MIN_COPIES} copies of 1 MB or more from {memory.lower()} memory were recorded")
    rates = ops.bytes / (ops.end - ops.start) * NS_PER_S
    best = percentile(rates, BEST_PERCENTILE)
    return with_example(best, "bytes_per_s", "copy", ops.start, ops.end)


def _uploads(recording: Recording, memory: str) -> DeviceOps:
    """Returns the copies to the device from host memory of the kind `memory`: "Pinned" or "Pageable"."""
    ops = device_work(recording, Work.UPLOAD)
    return ops.take(name_matches(recording.trace.names, ops.name, lambda name: f"{memory} -> Device" in name))
