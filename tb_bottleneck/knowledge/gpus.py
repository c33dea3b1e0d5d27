"""Data-sheet figures of GPUs by the name that torch and NVML report, and rates of PCI Express links.

The figures are in gpus.toml, the rates in pcie.toml.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from tb_bottleneck.knowledge.catalogue import Precision, load

SIMULATED_SUFFIX = " (simulated)"
"""The end of a device's name in a recording that a simulator wrote."""

USABLE_LINK_SHARE = 0.8
"""Share of the payload rate that a copy can use. Packets and flow control take 12 to 20 % (55.4 of 63 GB/s measured on
5x16)."""

PINNED_LANES = 16
"""Number of lanes that the rates of `pinned_rates` are for."""


@cache
def lane_rates() -> Mapping[int, float]:
    """Returns the payload rate of one lane in one direction, in GB/s, by generation."""
    return {entry["generation"]: float(entry["lane"]) for entry in load("pcie.toml")["link"]}


def link_text(
    speed: tuple[int, int],
    maximum: tuple[int, int] | None,
    device_maximum: int | None,
    device_lanes: int | None = None,
) -> str:
    """Returns the link in words: generation and lanes, and whether the slot or the device allows more.

    Args:
        speed: generation and lanes in use under load.
        maximum: the highest ones of this device in this slot.
        device_maximum: the highest generation of the device in any slot.
        device_lanes: the number of lanes of the device.
    """
    now = f"generation {speed[0]} x{speed[1]}"
    if maximum is None:
        return now
    if speed < maximum or speed[1] < maximum[1]:
        return f"{now}, maximum generation {maximum[0]} x{maximum[1]}"
    if device_maximum is not None and device_maximum > maximum[0]:
        return f"{now}, the limit of this slot; the device supports generation {device_maximum}"
    if device_lanes is not None and device_lanes > maximum[1]:
        return f"{now}, the limit of this slot; the device has {device_lanes} lanes"
    return f"{now}, the highest of this device in this slot"


@cache
def pinned_rates() -> Mapping[int, float]:
    """Returns the rate of copies from pinned memory over PINNED_LANES lanes, in GB/s, by generation."""
    entries = load("pcie.toml")["link"]
    return {entry["generation"]: float(entry["pinned_x16"]) for entry in entries if "pinned_x16" in entry}


TERA = 1e12
GIGA = 1e9


@dataclass(frozen=True)
class Gpu:
    """One kind of GPU. Peaks are dense rates in TFLOP/s by unit; units that the device does not have are absent.

    `bandwidth` is that of device memory, `nvlink` that of one direction, both in GB/s; `tdp` is in watts. `achievable`
    is the largest measured share of the bf16 (otherwise fp16) peak of a matrix product. `uncertain` figures were
    recalled or are disputed.
    """

    name: str
    tflops: Mapping[str, float]
    bandwidth: float
    pcie_generation: int | None
    pcie_lanes: int | None
    nvlink: float | None
    tdp: float
    achievable: float | None
    uncertain: bool
    source: str
    checked: str

    def peak_of(self, precision: Precision) -> float | None:
        """Returns the data-sheet peak for kernels of this precision in TFLOP/s, or None if there is none.

        Half-precision types on ordinary units use the peak of fp32: these kernels convert them before multiplying.
        """
        if precision.unit == "vector":
            return self.tflops.get("fp32") if precision.dtype in ("fp32", "fp16", "bf16") else None
        if precision.unit != "tensor" or precision.dtype is None:
            return None
        return self.tflops.get("fp32_matrix" if precision.dtype == "fp32" else precision.dtype)


@dataclass(frozen=True)
class Entry:
    """A pattern for complete names, real names that must match, and the GPU."""

    pattern: re.Pattern[str]
    examples: tuple[str, ...]
    gpu: Gpu


@lru_cache(maxsize=256)
def gpu_named(name: str) -> Gpu | None:
    """Returns the GPU with this name, or None if it is unknown, or a slice, laptop part or virtual part of a known one.

    A pattern has to match the complete name, and a test ensures that no name has two entries, so the order of entries
    is irrelevant. A name that is an example of an entry needs no pattern: compiling all patterns takes longer than
    reading a small recording.
    """
    plain = name.strip().removesuffix(SIMULATED_SUFFIX)
    for raw in load("gpus.toml")["gpu"]:
        if plain in raw["examples"]:
            return _gpu(raw)
    return next((entry.gpu for entry in entries() if entry.pattern.fullmatch(plain)), None)


def peak_from_properties(
    name: str, cc_major: int, cc_minor: int, multiprocessors: int, clock_hz: float
) -> Mapping[str, float] | None:
    """Returns the peaks of an NVIDIA GPU that gpu_named does not know, in TFLOP/s by unit, or None if not known.

    peak = multiprocessors x multiply-adds per clock and multiprocessor x 2 x clock. `clock_hz` is the highest
    multiprocessor clock (clock_rate of torch's device properties x 1000, or NVML's maximum). Boards do not always hold
    that clock under tensor load: the peaks of an H100 are stated for 1.83 GHz, while NVML's maximum is 1.98 GHz, 8 %
    more. `name` distinguishes GeForce from other lines. For a board of capability 12.0 outside GeForce the result is
    None: sources differ by a factor of two.
    """
    line = "GeForce" if "GeForce" in name else "other"
    for rate in rates():
        if rate["capability"] == f"{cc_major}.{cc_minor}" and rate["line"] in ("any", line):
            return {unit: multiprocessors * fma * 2 * clock_hz / TERA for unit, fma in rate["fma"].items()}
    return None


def bandwidth_from_properties(memory_clock_hz: float, bus_bits: int) -> float:
    """Returns the bandwidth of device memory in GB/s: clock x bytes per transfer x 2.

    The clock is the one that NVML and torch report (memory_clock_rate x 1000). With it the factor 2 is valid for HBM
    and for GDDR6, 6X and 7.
    """
    return memory_clock_hz * bus_bits / 8 * 2 / GIGA


@cache
def entries() -> tuple[Entry, ...]:
    """Returns the entries of gpus.toml."""
    return tuple(
        Entry(re.compile(raw["pattern"]), tuple(raw["examples"]), _gpu(raw)) for raw in load("gpus.toml")["gpu"]
    )


@cache
def known_names() -> tuple[str, ...]:
    """Returns the names of the devices in the order of gpus.toml."""
    return tuple(raw["name"] for raw in load("gpus.toml")["gpu"])


def multiprocessors_of(name: str) -> int | None:
    """Returns the number of multiprocessors or compute units of the device with this name in gpus.toml, if known."""
    return _multiprocessor_counts().get(name)


@cache
def _multiprocessor_counts() -> Mapping[str, int]:
    counts = load("gpus.toml")["multiprocessors"]
    return {name: number for entry in counts for name, number in entry["of"].items()}


@cache
def rates() -> tuple[Mapping[str, Any], ...]:
    """Returns the factors of the formula, by compute capability and line."""
    return tuple(load("gpus.toml")["rate"])


def _gpu(raw: Mapping[str, Any]) -> Gpu:
    pcie = raw.get("pcie", {})
    return Gpu(
        name=raw["name"],
        tflops=raw["tflops"],
        bandwidth=float(raw["bandwidth"]),
        pcie_generation=pcie.get("generation"),
        pcie_lanes=pcie.get("lanes"),
        nvlink=raw.get("nvlink"),
        tdp=float(raw["tdp"]),
        achievable=raw.get("achievable"),
        uncertain=raw.get("uncertain", False),
        source=raw["source"],
        checked=raw["checked"],
    )
