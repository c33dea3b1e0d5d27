"""Peak rates of the recording's device: the nominal peaks (DensePeaks), to which utilisation refers, and the rates that
kernels can reach (Peaks).

The peaks of another device are never used. Names, properties and calibrations (measured rates) in a recording are
untrusted: values that are impossible for the device are ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from tb_bottleneck.base.measure import Record
from tb_bottleneck.knowledge.catalogue import Precision
from tb_bottleneck.knowledge.gpus import GIGA, TERA, Gpu, bandwidth_from_properties, gpu_named, peak_from_properties
from tb_bottleneck.trace.header import DeviceFacts
from tb_bottleneck.trace.process_facts import positive
from tb_bottleneck.trace.trace import Trace


class DensePeaks(Record, frozen=True):
    """The nominal peaks to which utilisation refers. `tflops` has the rates in TFLOP/s by type, without sparsity.

    The rates are those of the data sheet, not the lower rates that kernels reach (`Peaks`). For a device without a data
    sheet, the rates are computed from the device's properties or taken from a calibration. `basis` is the source of the
    rates: calibration, data sheet or device properties. `uncertain` is True if the data sheet's values are uncertain.
    """

    tflops: Mapping[str, float]
    device: str
    basis: str
    uncertain: bool = False

    def of(self, precision: Precision) -> float | None:
        """Returns the peak for the type of `precision` in FLOP/s; None if the type or its peak is not known.

        For half precision, it is always the rate of the matrix units, even if a kernel does not use these units.
        """
        rate = self._rate(precision)
        return None if rate is None else rate * TERA

    def _rate(self, precision: Precision) -> float | None:
        dtype = precision.dtype
        single = max((self.tflops[unit] for unit in ("fp32", "fp32_matrix") if unit in self.tflops), default=None)
        if dtype == "fp32":
            return single
        if dtype in ("fp16", "bf16"):
            return self.tflops.get(dtype, single)
        return None if dtype is None else self.tflops.get(dtype)

    def fastest_type(self, precision: Precision) -> Precision:
        """Returns `precision`, except for fp32 on an unknown unit: then returns tf32 if the device has it, so that the
        utilisation is not overestimated."""
        is_open = precision.dtype == "fp32" and precision.unit == "unknown" and "tf32" in self.tflops
        return Precision("tensor", "tf32") if is_open else precision


def dense_peaks_of(trace: Trace) -> DensePeaks | None:
    """Returns the nominal peaks of the trace's device, or of the CPU if no device works; None if they are not known."""
    if not len(trace.device_ops):
        return _measured(trace, on_cpu=True)
    known = data_sheet_of(trace)
    if known is None:
        return _measured(trace, on_cpu=False)
    gpu, basis = known
    return DensePeaks(gpu.tflops, gpu.name, basis, gpu.uncertain)


def _measured(trace: Trace, on_cpu: bool) -> DensePeaks | None:
    peaks = cpu_peaks_of(trace) if on_cpu else peaks_of(trace)
    if peaks is None or not (peaks.tensor or peaks.vector):
        return None
    rates = dict(peaks.tensor) | ({"fp32": peaks.vector} if peaks.vector is not None else {})
    return DensePeaks(rates, "CPU" if on_cpu else "device", CALIBRATION)


# A measured rate outside of these shares of the data sheet's rate was measured on another device or is invented. The
# best matrix products reach 51 to 87 % of the data sheet (MI300X to A100), and boards with raised limits slightly more
# than 100 %.
MIN_OF_PEAK, MAX_OF_PEAK = 0.2, 1.15
# Copies reach 85 to 92 % of the data sheet if both read and written bytes count.
MIN_OF_BANDWIDTH, MAX_OF_BANDWIDTH = 0.5, 1.1
# Limits of measured rates if there is no data sheet: one core of a laptop is faster than the minimum, and no existing
# device is faster than the maximum.
MIN_FLOPS, MAX_FLOPS = 1e9, 1e17
MIN_BYTES_PER_S, MAX_BYTES_PER_S = 1e9, 1e14
# Tensor cores came with compute capability 7.0, and TF32 with 8.0 (CUDA C++ programming guide, compute capabilities).
MATRIX_FROM, TF32_FROM = (7, 0), (8, 0)
MATRIX_TYPES = {"tf32", "bf16", "fp16"}
CALIBRATION, DATA_SHEET, PROPERTIES = "calibration", "data sheet", "device properties"

_MEASURED_TYPES = {"bf16_flops": "bf16", "fp16_flops": "fp16", "tf32_flops": "tf32", "fp8_flops": "fp8"}


@dataclass(frozen=True)
class Peaks:
    """Rates that a device can reach. `tensor` has the rates of the matrix units by type in TFLOP/s, `vector` is the
    fp32 rate of the vector units in TFLOP/s or None, and `bandwidth` is in GB/s.

    Rates from a calibration in the recording are used first. The next source is the device table (data sheets). There,
    the rates of the matrix units are multiplied by `achievable`, the share that the best known matrix multiplication
    reaches. For a device that is not in the table, the rates are computed from the device's properties.

    `basis` is the source of the rates: calibration, data sheet or device properties. `achievable` is 1 if the rates are
    not scaled, or measured.
    """

    tensor: Mapping[str, float]
    vector: float | None
    bandwidth: float
    basis: str
    achievable: float = 1.0

    def of(self, precision: Precision) -> float | None:
        """Returns the rate for kernels of this precision in TFLOP/s; None if the rate is unknown.

        For half precision on vector units, it is the fp32 rate, because these kernels convert to fp32 before they
        multiply.
        """
        if precision.unit == "vector":
            return self.vector if precision.dtype in ("fp32", "fp16", "bf16") else None
        if precision.unit != "tensor" or precision.dtype is None:
            return None
        return self.tensor.get("fp32_matrix" if precision.dtype == "fp32" else precision.dtype)


def peaks_of(trace: Trace) -> Peaks | None:
    """Returns the reachable rates of the trace's device; None if neither data sheet, properties nor calibration are
    known."""
    return measured_peaks(*_device(trace), calibration(trace))


def measured_peaks(gpu: Gpu | None, basis: str, measured: Mapping[str, float]) -> Peaks | None:
    """Returns the reachable rates of a device; None if they are not known.

    `gpu` has the nominal rates or is None, and `basis` is their source. `measured` maps the names of calibrated rates
    to values in FLOP/s or bytes/s. Plausible measured rates replace those of `gpu`.
    """
    if gpu is None:
        return _measured_only(measured)
    tensor = {unit: rate * (gpu.achievable or 1.0) for unit, rate in gpu.tflops.items() if unit != "fp32"}
    peaks = Peaks(tensor, gpu.tflops.get("fp32"), gpu.bandwidth, basis, gpu.achievable or 1.0)
    rates = {
        kind: measured[key] / TERA
        for key, kind in _MEASURED_TYPES.items()
        if key in measured and _is_plausible(measured[key] / TERA, gpu.tflops.get(kind), MIN_OF_PEAK, MAX_OF_PEAK)
    }
    if "bf16" in rates and "fp16" in gpu.tflops:
        rates.setdefault("fp16", rates["bf16"])  # the matrix units run both at one rate
    if rates:
        peaks = replace(peaks, tensor=tensor | rates, basis=CALIBRATION, achievable=1.0)
    vector = measured.get("fp32_flops", 0.0) / TERA
    if _is_plausible(vector, gpu.tflops.get("fp32"), MIN_OF_PEAK, MAX_OF_PEAK):
        peaks = replace(peaks, vector=vector, basis=CALIBRATION)
    bandwidth = measured.get("copy_bytes_per_s", 0.0) / GIGA
    if _is_plausible(bandwidth, gpu.bandwidth, MIN_OF_BANDWIDTH, MAX_OF_BANDWIDTH):
        peaks = replace(peaks, bandwidth=bandwidth, basis=CALIBRATION)
    return peaks


def cpu_peaks_of(trace: Trace) -> Peaks | None:
    """Returns the measured rates of the CPU; None if the trace describes a device, or if no rates were recorded."""
    return None if trace.header.device(trace.device_index) is not None else _measured_only(calibration(trace))


def data_sheet_of(trace: Trace) -> tuple[Gpu, str] | None:
    """Returns (nominal data of the trace's device, source of the data); None if they are not known."""
    gpu, basis = _device(trace)
    return None if gpu is None else (gpu, basis)


def calibration(trace: Trace) -> dict[str, float]:
    """Returns the rates that were measured on the device and recorded, by name. Values are positive numbers."""
    raw = trace.header.context.get("calibration")
    if not isinstance(raw, Mapping):
        return {}
    return {str(key): value for key, value in ((k, positive(v)) for k, v in raw.items()) if value is not None}


def has_matrix_units(trace: Trace) -> bool | None:
    """Returns True if the device has matrix units for half precision or TF32, False if it has none; None if unknown."""
    facts = trace.header.device(trace.device_index)
    gpu = gpu_named(facts.name) if facts is not None else None
    if gpu is not None:
        return bool(MATRIX_TYPES & gpu.tflops.keys())
    if facts is None or facts.capability is None or _is_amd(trace):
        return None
    return facts.capability >= MATRIX_FROM and "GTX 16" not in facts.name  # Turing without tensor cores


def has_tf32(trace: Trace) -> bool:
    """Returns True if the device is known to support TF32; False if it does not or this is unknown."""
    facts = trace.header.device(trace.device_index)
    gpu = gpu_named(facts.name) if facts is not None else None
    if gpu is not None:
        return "tf32" in gpu.tflops
    is_cuda = facts is not None and facts.capability is not None and not _is_amd(trace)
    return is_cuda and facts is not None and facts.capability is not None and facts.capability >= TF32_FROM


def _device(trace: Trace) -> tuple[Gpu | None, str]:
    facts = trace.header.device(trace.device_index)
    if facts is None:
        return None, ""
    gpu = gpu_named(facts.name)
    return (gpu, DATA_SHEET) if gpu is not None else (_from_properties(trace, facts), PROPERTIES)


def _from_properties(trace: Trace, facts: DeviceFacts) -> Gpu | None:
    """Returns nominal data computed from the device's properties; None if a property is missing, or for AMD devices.

    The clocks and the bus width are taken from the facts that the training process added (Header.context).
    """
    context, processors = trace.header.context, trace.multiprocessors
    clock, memory_clock = positive(context.get("sm_clock_hz")), positive(context.get("memory_clock_hz"))
    bus = positive(context.get("memory_bus_bits"))
    if None in (clock, memory_clock, bus, facts.capability, processors) or _is_amd(trace):
        return None
    return _computed(facts.name, facts.capability or (0, 0), processors or 0, clock or 0, memory_clock or 0, bus or 0)


@lru_cache(maxsize=64)
def _computed(
    name: str, capability: tuple[int, int], processors: int, clock: float, memory_clock: float, bus: float
) -> Gpu | None:
    tflops = peak_from_properties(name, *capability, processors, clock)
    bandwidth = bandwidth_from_properties(memory_clock, int(bus))
    if not tflops or not MIN_BYTES_PER_S <= bandwidth * GIGA <= MAX_BYTES_PER_S:
        return None
    return Gpu(name, tflops, bandwidth, tdp=0.0, source="", checked="", uncertain=True)


def _measured_only(measured: Mapping[str, float]) -> Peaks | None:
    """Returns the rates of a device from the calibration `measured` alone; None if the measured bandwidth is missing or
    impossible."""
    bandwidth, vector = measured.get("copy_bytes_per_s", 0.0), measured.get("fp32_flops", 0.0)
    if not MIN_BYTES_PER_S <= bandwidth <= MAX_BYTES_PER_S:
        return None
    tensor = {
        kind: measured[key] / TERA
        for key, kind in _MEASURED_TYPES.items()
        if MIN_FLOPS <= measured.get(key, 0.0) <= MAX_FLOPS
    }
    has_vector = MIN_FLOPS <= vector <= MAX_FLOPS
    return Peaks(tensor, vector / TERA if has_vector else None, bandwidth / GIGA, CALIBRATION)


def _is_plausible(value: float, data_sheet: float | None, low: float, high: float) -> bool:
    return data_sheet is not None and low * data_sheet <= value <= high * data_sheet


def _is_amd(trace: Trace) -> bool:
    return trace.header.rocm
