"""Changes of the hardware: another device in the same machine, or another link between host and device."""

import re
from dataclasses import replace

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.base.units import share_text
from tb_bottleneck.bottlenecks.transfer.fixes import HEALTHY_LINK
from tb_bottleneck.comparison.devices.device_rates import (
    MAX_LANES,
    MIN_GENERATION,
    DeviceModel,
    calibrated_device,
    device_by_sheet,
    device_named,
    device_of,
    link_rate,
    unknown_device_reason,
    with_article,
)
from tb_bottleneck.comparison.devices.kernel_scaling import (
    DevicePair,
    bounds_on_b,
    collective_assumptions,
    link_bound_copies,
    link_time_factors,
    scaled_lengths,
    vendor_assumptions,
)
from tb_bottleneck.knowledge.catalogue import precision_of
from tb_bottleneck.knowledge.gpus import lane_rates
from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.replay.scenario import CannotPredict, ParameterScenario
from tb_bottleneck.trace.device_ops import MIN_LINK_BOUND_BYTES, Work
from tb_bottleneck.trace.table import Floats

_LINK = re.compile(r"(?:gen|pcie)?\s*(\d)\s*x\s*(\d{1,2})", re.IGNORECASE)
# Factors on the rate of a link by estimate, because links of one kind differ: 80 to 88 % of their capacity was
# measured.
LINK_SPREAD = {Estimate.EXPECTED: 1.0, Estimate.LOW: 0.9, Estimate.HIGH: 1.1}


def change_link(recording: Recording, text: str, new_device: DeviceModel | None = None) -> ParameterScenario:
    """Returns the change to the PCIe link `text`, such as "gen4x16", between host and device.

    If the run also moves to the device `new_device`, the change of the device must use the result of with_link, which
    scales the copies that the link limits. Then, this change only sets a lower bound for staged copies.

    Raises:
        CannotPredict: the link of the recording is not known.
        NotFound: there is no link `text`.
    """
    generation, lanes, rate = _parse(text)
    now, how = (
        _now(recording)
        if new_device is None
        else (new_device.link, f"instead of the best slot for the {new_device.name}")
    )
    if now is None:
        raise CannotPredict("The link of this recording is unknown; the monitor records it.")
    ops = recording.trace.device_ops
    ratio, rows = rate / now, link_bound_copies(recording, ops)
    staged = np.isin(ops.work, (Work.UPLOAD, Work.DOWNLOAD)) & (ops.bytes >= MIN_LINK_BOUND_BYTES) & ~rows
    length = (ops.end - ops.start) * recording.in_window(ops.start)
    share = float(length[rows].sum() / max(recording.account.window, 1))

    def factors(estimate: Estimate) -> Floats:
        # Copies that the host stages use the link too, so they take at least that long.
        least = ops.bytes / (rate * LINK_SPREAD[estimate]) / np.maximum(ops.end - ops.start, 1)
        by_link = link_time_factors(ops, now, ratio, estimate) / LINK_SPREAD[estimate] if new_device is None else 1.0
        return np.where(rows, by_link, np.where(staged, np.maximum(least, 1.0), 1.0))

    assumptions = (
        f"{how}: {_rate(now)} GB/s usable {'now' if new_device is None else 'in it'}, {_rate(rate)} then",
        f"copies that the link limits take {share_text(share)} of the time now, on the device's own clock",
        "copies from pageable memory gain nothing, because the host stages them, and are never faster than the link",
    )
    wide = f"{lanes} lane{'s' if lanes > 1 else ''}"
    clause = f"the link were PCIe {generation}.0 with {wide}"
    return ParameterScenario("link", clause=clause, assumptions=assumptions, factors=factors, fix=HEALTHY_LINK)


def with_link(recording: Recording, devices: DevicePair, text: str) -> DevicePair:
    """Returns `devices` with the link `text`, for example "gen4x16", for device B, and the link of the recording for
    device A. Raises NotFound if there is no link `text`."""
    now, _ = _now(recording)
    return DevicePair(replace(devices.a, link=now or devices.a.link), replace(devices.b, link=_parse(text)[2]))


def _parse(text: str) -> tuple[int, int, float]:
    """Returns the PCIe generation, the number of lanes, and the usable rate in GB/s of the link `text`, such as
    "gen4x16". Raises NotFound if there is no such link."""
    match = _LINK.fullmatch(text.strip())
    rate = link_rate(int(match[1]), int(match[2])) if match else None
    if match is None or rate is None:
        raise NotFound(
            f"{text!r} is not a known link; write it as in gen4x16, with a generation from {MIN_GENERATION} to "
            f"{max(lane_rates())} and up to {MAX_LANES} lanes"
        )
    return int(match[1]), int(match[2]), rate


def _rate(rate: float) -> str:
    """Formats a rate in GB/s, as in "25" or "1.6"."""
    return f"{rate:.0f}" if rate >= 9.95 else f"{rate:.1f}"


def _now(recording: Recording) -> tuple[float | None, str]:
    """Returns the usable rate of the recording's PCIe link in GB/s (None if it is not known), and a clause with the
    source of this rate."""
    context = recording.trace.header.context
    generation, lanes = context.get("link_generation"), context.get("link_lanes", context.get("link_width"))
    if isinstance(generation, int) and isinstance(lanes, int):
        return link_rate(generation, lanes), "the link as the run recorded it"
    device = device_of(recording.trace)
    return (device.link if device is not None else None), "the recording is assumed to use the best slot for its device"


def device_pair_to(recording: Recording, name: str) -> DevicePair:
    """Returns the pair of the recording's device (A) and the device with the name `name` (B).

    Raises:
        NotFound: no device of this name is listed or calibrated.
        CannotPredict: the device of the recording is not known.
    """
    current, measured = device_of(recording.trace), calibrated_device(name)
    if current is not None and measured is not None and current.basis == measured.basis:
        return DevicePair(current, measured)
    target = device_named(name)
    # Rates of the data sheet are used, as for the other device, because the ratio of measured rates and data sheet
    # rates has no meaning.
    current = device_by_sheet(recording.trace) or current
    if current is None:
        raise CannotPredict(unknown_device_reason(recording.trace))
    return DevicePair(current, target)


def change_device(recording: Recording, devices: DevicePair) -> ParameterScenario:
    """Returns the change to the device `devices.b` in the same machine.

    Kernel times change with the arithmetic rate and the bandwidth that limit them, copies with the link between host
    and device. The host stays the same.
    """

    def factors(estimate: Estimate) -> Floats:
        ops = recording.trace.device_ops
        return np.asarray(scaled_lengths(recording, devices, estimate) / np.maximum(ops.end - ops.start, 1), np.float64)

    bounds = bounds_on_b(recording, devices)
    assumptions = [
        "host, loader and storage stay the same",
        "each kernel reaches the same share of its roof; one that memory limits gains in this share of its time only; "
        "predictions of this kind have a mean error of 12 % (Habitat)",
    ]
    assumptions.extend([*vendor_assumptions(devices), *collective_assumptions(recording)])
    lacking = _lacking(recording, devices)
    if lacking:
        assumptions.append(f"products in {' and '.join(lacking)} run as fp32 there, because it has no units for them")
    if devices.b.multiprocessors is None:
        assumptions.append(
            f"the number of multiprocessors of the {devices.b.name} is not known: small grids count as full"
        )
    clause = f"it ran on {with_article(devices.b.name)}"
    return ParameterScenario("device", clause=clause, assumptions=tuple(assumptions), factors=factors, bounds=bounds)


def slot_assumptions(recording: Recording, devices: DevicePair) -> tuple[str, ...]:
    """Returns a tuple with a sentence about the assumed PCIe slot of device B; empty if the slot does not matter."""
    if not devices.a.link or not devices.b.link or devices.a.link == devices.b.link:
        return ()
    if not link_bound_copies(recording, recording.trace.device_ops).any():
        return ()
    return (
        f"it is in the best slot for this device, with {devices.b.link:.0f} GB/s usable instead of "
        f"{devices.a.link:.0f}; for another slot, state the link too",
    )


def _lacking(recording: Recording, devices: DevicePair) -> list[str]:
    """Returns the sorted names of the types in which contractions of the recording run and that only the units of
    device A support, not those of device B."""
    ops = recording.trace.device_ops
    names = np.unique(ops.name[ops.work == Work.CONTRACTION]).tolist()
    precisions = {precision_of(recording.trace.names[name]) for name in names}
    lacking = [
        precision
        for precision in precisions
        if precision is not None and devices.a.rate(precision) and not devices.b.rate(precision)
    ]
    return sorted({precision.dtype for precision in lacking if precision.dtype is not None})
