"""Data-sheet figures of GPUs, which are found by the name that torch and NVML report, and rates of PCI Express links.

The figures are in gpus.toml, the rates in pcie.toml.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from tb_bottleneck.base.measure import Record
from tb_bottleneck.knowledge.catalogue import Precision, Source, load, typed

SIMULATED_SUFFIX = " (simulated)"
"""Suffix of the device's name in recordings that a simulator wrote."""

USABLE_LINK_SHARE = 0.8
"""Share of the payload rate that a copy can use. Packets and flow control take 12 to 20 % (55.4 of 63 GB/s measured on
5x16)."""

PINNED_LANES = 16
"""Number of lanes of the links whose rates `pinned_rates` returns."""


@cache
def lane_rates() -> Mapping[int, float]:
    """Returns a dict from PCIe generations to the payload rate of one lane in one direction, in GB/s."""
    return {entry["generation"]: float(entry["lane"]) for entry in load("pcie.toml")["link"]}


def link_text(
    speed: tuple[int, int], maximum: tuple[int, int] | None, device_maximum: int | None, device_lanes: int | None = None
) -> str:
    """Returns the link in words: its generation and lanes, and whether the slot or the device allows more.

    Args:
        speed: generation and lanes in use under load.
        maximum: highest generation and lanes of this device in this slot; None if unknown.
        device_maximum: highest generation of the device in any slot; None if unknown.
        device_lanes: number of lanes of the device; None if unknown.
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
    """Returns a dict from PCIe generations to the rate of pinned copies over PINNED_LANES lanes, in GB/s."""
    entries = load("pcie.toml")["link"]
    return {entry["generation"]: float(entry["pinned_x16"]) for entry in entries if "pinned_x16" in entry}


TERA = 1e12
GIGA = 1e9


# On consumer GPUs of compute capability 8.6 and newer (CUDA C++ programming guide, arithmetic instructions); it is 1/32
# on those of 7.5.
LEAST_DOUBLE_RATE = 1 / 64


class Slot(Record, frozen=True):
    """The generation and the number of lanes of a PCIe link; None if not known."""

    generation: int | None = None
    lanes: int | None = None


class Gpu(Record, frozen=True):
    """One kind of GPU. The peak rates are those without sparsity, in TFLOP/s, by arithmetic unit; units that the device
    does not have are absent.

    `bandwidth` is the bandwidth of device memory, `nvlink` that of NVLink in one direction, both in GB/s. `tdp` is in
    watts. `fp64` is the peak of products in float64. `achievable` is the largest measured share of the bf16 (otherwise
    fp16) peak that a matrix multiplication reaches. `uncertain` is True if figures are disputed or were not looked up.
    """

    name: str
    tflops: Mapping[str, float]
    bandwidth: float
    tdp: float
    source: Source
    checked: str
    pcie: Slot = Slot()
    nvlink: float | None = None
    fp64: float | None = None
    achievable: float | None = None
    uncertain: bool = False

    @property
    def double_rate(self) -> float:
        """The rate of products in float64 / that of products in float32 without TF32."""
        single = max(self.tflops["fp32"], self.tflops.get("fp32_matrix", 0.0))
        return LEAST_DOUBLE_RATE if self.fp64 is None else self.fp64 / single

    def peak_of(self, precision: Precision) -> float | None:
        """Returns the data-sheet peak in TFLOP/s for kernels of this precision, or None if the data sheet has none.

        Half-precision types on vector units have the peak of fp32, because such kernels convert values to fp32.
        """
        if precision.unit == "vector":
            return self.tflops.get("fp32") if precision.dtype in ("fp32", "fp16", "bf16") else None
        if precision.unit != "tensor" or precision.dtype is None:
            return None
        return self.tflops.get("fp32_matrix" if precision.dtype == "fp32" else precision.dtype)


@dataclass(frozen=True)
class Entry:
    """An entry of gpus.toml for one kind of GPU.

    `pattern` must match the complete name of a device. `examples` are real names that match; `gpu` has the figures.
    """

    pattern: re.Pattern[str]
    examples: tuple[str, ...]
    gpu: Gpu


@lru_cache(maxsize=256)
def gpu_named(name: str) -> Gpu | None:
    """Returns the GPU with this name, or None if the name is unknown.

    Slices, laptop versions and virtual versions of known GPUs count as unknown. A pattern has to match the complete
    name. A test ensures that no name has two entries, so the order of entries does not matter. The examples of entries
    are compared first, because compiling all patterns takes longer than reading a small recording.
    """
    plain = name.strip().removesuffix(SIMULATED_SUFFIX)
    for raw in load("gpus.toml")["gpu"]:
        if plain in raw["examples"]:
            return _gpu(raw)
    return next((entry.gpu for entry in entries() if entry.pattern.fullmatch(plain)), None)


def peak_from_properties(
    name: str, cc_major: int, cc_minor: int, multiprocessors: int, clock_hz: float
) -> Mapping[str, float] | None:
    """Returns the peaks in TFLOP/s by unit of an NVIDIA GPU that gpu_named does not know, or None if not known.

    peak = multiprocessors x multiply-adds per clock and multiprocessor x 2 x clock. `cc_major` and `cc_minor` are the
    compute capability. `clock_hz` is the highest multiprocessor clock (clock_rate of torch's device properties x 1000,
    or NVML's maximum). Boards do not always hold that clock under tensor load: the peaks of an H100 are stated for 1.83
    GHz, while NVML's maximum is 1.98 GHz, 8 % more. `name` distinguishes GeForce from other lines. For a board of
    capability 12.0 outside GeForce the result is None: sources differ by a factor of two.
    """
    line = "GeForce" if "GeForce" in name else "other"
    for rate in rates():
        if rate["capability"] == f"{cc_major}.{cc_minor}" and rate["line"] in ("any", line):
            return {unit: multiprocessors * fma * 2 * clock_hz / TERA for unit, fma in rate["fma"].items()}
    return None


def bandwidth_from_properties(memory_clock_hz: float, bus_bits: int) -> float:
    """Returns the bandwidth of device memory in GB/s: clock x bytes per transfer x 2.

    `memory_clock_hz` is the clock that NVML and torch report (memory_clock_rate x 1000). With this clock, the factor 2
    is valid for HBM and for GDDR6, 6X and 7. `bus_bits` is the width of the memory bus; one transfer has bus_bits / 8
    bytes.
    """
    return memory_clock_hz * bus_bits / 8 * 2 / GIGA


@cache
def entries() -> tuple[Entry, ...]:
    """Returns the entries of gpus.toml."""
    return tuple(
        Entry(re.compile(raw["pattern"]), tuple(raw["examples"]), typed("gpus.toml", Gpu, raw))
        for raw in load("gpus.toml")["gpu"]
    )


@cache
def known_names() -> tuple[str, ...]:
    """Returns the names of the devices in the order of gpus.toml."""
    return tuple(raw["name"] for raw in load("gpus.toml")["gpu"])


def multiprocessors_of(name: str) -> int | None:
    """Returns the number of multiprocessors (AMD: compute units) of the device `name` in gpus.toml; None if unknown."""
    return _multiprocessor_counts().get(name)


@cache
def _multiprocessor_counts() -> Mapping[str, int]:
    counts = load("gpus.toml")["multiprocessors"]
    return {name: number for entry in counts for name, number in entry["of"].items()}


@cache
def rates() -> tuple[Mapping[str, Any], ...]:
    """Returns the factors of the formula in peak_from_properties, one entry per compute capability and product line."""
    return tuple(load("gpus.toml")["rate"])


def _gpu(raw: Mapping[str, Any]) -> Gpu:
    return typed("gpus.toml", Gpu, raw)
