"""What a device can do by its maker's data, found by the name that torch and NVML report."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from tb_bottleneck.knowledge.catalogue import load
from tb_bottleneck.knowledge.precisions import Precision

TERA = 1e12
GIGA = 1e9


@dataclass(frozen=True)
class Gpu:
    """One kind of device. Peaks are dense rates in TFLOP/s by unit; a unit that the device lacks is absent.

    `bandwidth` is of device memory, `nvlink` of one direction, both in GB/s; `tdp` in watts. `achievable` is the share
    of the bf16 (else fp16) peak that the best matrix product was seen to reach. `uncertain` figures were recalled or
    are disputed.
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
        """The datasheet's roof for kernels of this precision, in TFLOP/s; None where the device has or tells none.

        Half-precision types on ordinary units are held against fp32: these kernels widen them to multiply.
        """
        if precision.unit == "vector":
            return self.tflops.get("fp32") if precision.dtype in ("fp32", "fp16", "bf16") else None
        if precision.unit != "tensor" or precision.dtype is None:
            return None
        return self.tflops.get("fp32_matrix" if precision.dtype == "fp32" else precision.dtype)


@dataclass(frozen=True)
class Entry:
    """A pattern for whole names, real names that it must match, and what they stand for."""

    pattern: re.Pattern[str]
    examples: tuple[str, ...]
    gpu: Gpu


@lru_cache(maxsize=256)
def gpu_named(name: str) -> Gpu | None:
    """The device of this name; None where it is unknown, or a slice, a laptop part or a virtual piece of a known one.

    A pattern has to match the whole name, and a test sees to it that no name has two entries: no order among entries,
    and no longest match, decides. A name that is an entry's example needs no pattern: compiling them all takes longer
    than a small recording takes to be read.
    """
    plain = name.strip()
    for raw in load("gpus.toml")["gpu"]:
        if plain in raw["examples"]:
            return _gpu(raw)
    return next((entry.gpu for entry in entries() if entry.pattern.fullmatch(plain)), None)


def peak_from_properties(
    name: str, cc_major: int, cc_minor: int, multiprocessors: int, clock_hz: float
) -> Mapping[str, float] | None:
    """The peaks of an NVIDIA device that gpu_named does not know, in TFLOP/s by unit; None where its rates are unknown.

    peak = multiprocessors x multiply-adds per clock and multiprocessor x 2 x clock. `clock_hz` is the highest
    multiprocessor clock (clock_rate of torch's device properties x 1000, or NVML's maximum). Boards do not always hold
    that clock under tensor load: an H100's printed peaks are of 1.83 GHz while NVML's maximum is 1.98 GHz, 8 % more.
    `name` decides between GeForce and other lines. A board of capability 12.0 outside GeForce gets None: sources differ
    by a factor of two.
    """
    line = "GeForce" if "GeForce" in name else "other"
    for rate in rates():
        if rate["capability"] == f"{cc_major}.{cc_minor}" and rate["line"] in ("any", line):
            return {unit: multiprocessors * fma * 2 * clock_hz / TERA for unit, fma in rate["fma"].items()}
    return None


def bandwidth_from_properties(memory_clock_hz: float, bus_bits: int) -> float:
    """Bandwidth of device memory in GB/s: clock x bytes per transfer x 2.

    The clock is the one NVML and torch report (memory_clock_rate x 1000); with it the factor 2 holds for HBM and for
    GDDR6, 6X and 7.
    """
    return memory_clock_hz * bus_bits / 8 * 2 / GIGA


@cache
def entries() -> tuple[Entry, ...]:
    """The entries of gpus.toml: pattern, the names that it must match, and the device."""
    return tuple(
        Entry(re.compile(raw["pattern"]), tuple(raw["examples"]), _gpu(raw)) for raw in load("gpus.toml")["gpu"]
    )


@cache
def known_names() -> tuple[str, ...]:
    """What the devices are called here, in the order of gpus.toml."""
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
    """The factors of the formula, by compute capability and line."""
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
