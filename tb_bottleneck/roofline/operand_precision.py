"""Which roof a kernel runs into: arithmetic, bandwidth, its own smallness, or neither."""

from dataclasses import dataclass

from tb_bottleneck.knowledge.gpus import GIGA, TERA, Gpu
from tb_bottleneck.knowledge.precisions import Precision
from tb_bottleneck.roofline.underfilled import FILLED_SHARE, TOO_SHORT_NS

# From this share of a roof on it is the roof that bounds. Nsight Compute draws the same line in its speed-of-light
# section: below 60 % of both it sends its readers to look for latency instead.
COMPUTE_BOUND_FROM = 0.6
MEMORY_BOUND_FROM = 0.6
# Winograd's largest common tiles save a factor of 4 in multiplications, and caches outrun their memory by less. What
# claims more was not done in this time: some recordings tie kernels to the wrong operators (12 times an A100's peak in
# one public recording).
IMPLAUSIBLE_FROM = 4.0


@dataclass(frozen=True)
class Bound:
    """What bounds a kernel, with the two shares behind it.

    `kind` is compute, memory, underfilled, neither, or None where it cannot be told, and then `because` says why. Work
    per nanosecond over what the device can do: `of_peak` is a share of the arithmetic that can be reached (the
    datasheet's peak x the share of it that the best product was seen to reach, where that is known), `of_bandwidth` of
    the datasheet's bandwidth. Both can exceed 1: by Winograd's and Fourier's savings, and by data found in the cache.
    """

    kind: str | None
    of_peak: float | None
    of_bandwidth: float | None
    because: str = ""


def bound_of(
    flops: int | None,
    bytes: int | None,
    duration_ns: int,
    gpu: Gpu | None,
    precision: Precision | None,
    blocks: int,
    multiprocessors: int | None,
) -> Bound:
    """The bound of one kernel, or of one operator whose kernels' durations are summed.

    A kernel shorter than TOO_SHORT_NS, or with fewer blocks than FILLED_SHARE of the multiprocessors, is underfilled
    whatever it reaches. Else, of_peak = flops / (duration x peak) and of_bandwidth = bytes / (duration x bandwidth):
    compute from COMPUTE_BOUND_FROM on, memory from MEMORY_BOUND_FROM on, the higher one where both are. Where both are
    known and low, neither: latency, strides, atomics, misaligned shapes. Where one is low and the other unknown, or one
    is IMPLAUSIBLE_FROM or more, nothing is said. `flops` is 0 for kernels that do no arithmetic worth counting, None
    where it is unknown; `blocks` is 0 where it was not recorded.
    """
    if duration_ns <= 0:
        return Bound(None, None, None, "the kernel has no duration")
    of_peak = _of_peak(flops, duration_ns, gpu, precision)
    of_bandwidth = None if bytes is None or gpu is None else bytes / duration_ns / (gpu.bandwidth * GIGA / 1e9)
    if max(of_peak or 0.0, of_bandwidth or 0.0) >= IMPLAUSIBLE_FROM:
        return Bound(
            None, of_peak, of_bandwidth, "no device does so much in this time: the kernel is another operator's"
        )
    kind = _small(duration_ns, blocks, multiprocessors) or _roof(of_peak, of_bandwidth)
    because = "" if kind else _missing(flops, bytes, gpu, of_peak)
    return Bound(kind, of_peak, of_bandwidth, because)


def with_operand_type(precision: Precision | None, operand_type: str) -> Precision | None:
    """The precision with the type that the operator's operands have, where the kernel's name is silent about it.

    Only half-precision operands tell it: "float" may be multiplied as fp32 or as tf32.
    """
    if precision is None or precision.dtype is not None:
        return precision
    return Precision(precision.unit, _TOLD_BY_OPERANDS.get(operand_type))


_TOLD_BY_OPERANDS = {"c10::BFloat16": "bf16", "c10::Half": "fp16"}


def _small(duration_ns: int, blocks: int, multiprocessors: int | None) -> str | None:
    few = multiprocessors is not None and 0 < blocks < FILLED_SHARE * multiprocessors
    return "underfilled" if few or duration_ns < TOO_SHORT_NS else None


def _roof(of_peak: float | None, of_bandwidth: float | None) -> str | None:
    compute, memory = of_peak or 0.0, of_bandwidth or 0.0
    if compute >= COMPUTE_BOUND_FROM and compute >= memory:
        return "compute"
    if memory >= MEMORY_BOUND_FROM:
        return "memory"
    return None if of_peak is None or of_bandwidth is None else "neither"


def _of_peak(flops: int | None, duration_ns: int, gpu: Gpu | None, precision: Precision | None) -> float | None:
    """Share of the reachable arithmetic; what matrix units reach of their peak was measured, of ordinary ones not."""
    if flops == 0:
        return 0.0
    peak = gpu.peak_of(precision) if gpu is not None and precision is not None else None
    if flops is None or gpu is None or precision is None or peak is None:
        return None
    reachable = gpu.achievable or 1.0 if precision.unit == "tensor" else 1.0
    return flops / duration_ns / (peak * reachable * TERA / 1e9)


def _missing(flops: int | None, bytes: int | None, gpu: Gpu | None, of_peak: float | None) -> str:
    if gpu is None:
        return "the device's peaks are not known"
    if flops is None and bytes is None:
        return "the operator's work and traffic are not known: its shapes were not recorded, or it is not a known one"
    if flops is None:
        return "the operator's work is not known"
    if of_peak is None:
        return "the device's peak for this kernel's type is not known, or its name does not tell the type"
    return "the operator's traffic is not known"
