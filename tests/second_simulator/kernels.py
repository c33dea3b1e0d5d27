"""Kernels of a roofline device: how long each runs, and what limits it."""

from dataclasses import dataclass
from math import ceil

FIXED_US = 1.8
"""Time of a kernel that does nothing, from the start of its first block to the end of its last one."""


@dataclass(frozen=True)
class Device:
    """A device by its data sheet: dense TFLOP/s per type, and GB/s of its memory and of its link to the host."""

    name: str
    capability: tuple[int, int]
    sms: int
    half: float
    single: float
    memory: float
    pinned: float
    pageable: float


DEVICES = (
    Device("NVIDIA A100-SXM4-40GB", (8, 0), 108, 312.0, 19.5, 1555.0, 23.0, 5.5),
    Device("Tesla V100-SXM2-16GB", (7, 0), 80, 125.0, 15.7, 900.0, 12.0, 3.5),
    Device("NVIDIA H100 80GB HBM3", (9, 0), 132, 989.0, 67.0, 3350.0, 48.0, 8.0),
)


@dataclass(frozen=True)
class Kernel:
    """A kernel, with its duration in microseconds and the regime that it runs in."""

    name: str
    us: float
    regime: str
    grid: tuple[int, int, int]


def _kernel(device: Device, name: str, flop_us: float, byte_us: float, grid: tuple[int, int, int]) -> Kernel:
    # Fewer blocks than multiprocessors leave a share of the device unused.
    full = max(flop_us, byte_us)
    us = FIXED_US + full / min(1.0, grid[0] * grid[1] / device.sms)
    regime = "underfilled" if full < us / 2 else "compute" if flop_us >= byte_us else "memory"
    return Kernel(name, us, regime, grid)


def matrix_product(device: Device, m: int, n: int, k: int, half: bool) -> Kernel:
    """Returns the product of (m, k) and (k, n), at 70 % of the peak and 75 % of the bandwidth."""
    size, peak, name = (2, device.half, "f16_s16816gemm_f16") if half else (4, device.single, "sgemm")
    flop_us = 2.0 * m * n * k / (peak * 1e6 * 0.7)
    byte_us = size * (m * k + k * n + m * n) / (device.memory * 1e3 * 0.75)
    return _kernel(
        device, f"sm{device.capability[0]}0_{name}_128x128_nn", flop_us, byte_us, (ceil(m / 128), ceil(n / 128), 1)
    )


def elementwise(device: Device, elements: int, half: bool, operands: int = 3) -> Kernel:
    """Returns an operation that moves `operands` tensors of that many elements, at 80 % of the bandwidth."""
    byte_us = operands * (2 if half else 4) * elements / (device.memory * 1e3 * 0.8)
    functor = f"CUDAFunctor_add<{'c10::Half' if half else 'float'}>"
    name = f"void at::native::vectorized_elementwise_kernel<4, at::native::{functor}, at::detail::Array<char*, 3> >"
    return _kernel(device, name, 0.0, byte_us, (max(1, ceil(elements / 1024)), 1, 1))


def all_reduce(megabytes: float, gigabytes_per_s: float, late_us: float) -> Kernel:
    """Returns an all-reduce over that bandwidth, which also waits for the latest rank."""
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    return Kernel(name, 20.0 + megabytes * 1e3 / gigabytes_per_s + late_us, "communication", (16, 1, 1))
