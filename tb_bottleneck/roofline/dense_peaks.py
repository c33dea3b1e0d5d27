"""The peak of a device by the type that it multiplies, as utilisation is stated against: dense, never with sparsity.

The rates are those of the data sheet, not the share of them that products reach (device_peaks.py). A device without a
data sheet has the rates that follow from its properties, or those that a calibration measured on it. No device gets the
peak of another one.
"""

from collections.abc import Mapping

from tb_bottleneck.base.record import Record
from tb_bottleneck.knowledge.catalogue import Precision
from tb_bottleneck.knowledge.gpus import TERA
from tb_bottleneck.roofline.device_peaks import CALIBRATION, cpu_peaks_of, data_sheet_of, peaks_of
from tb_bottleneck.trace.trace import Trace


class DensePeaks(Record, frozen=True):
    """Rates in TFLOP/s by type; `basis` is their source: calibration, data sheet or device properties."""

    tflops: Mapping[str, float]
    device: str
    basis: str
    uncertain: bool = False

    def of(self, precision: Precision) -> float | None:
        """Returns the peak of the type in FLOP/s; None if the device has none or the type is not known.

        Half precision has the rate of the matrix units even where a kernel does not use them: the peak is that of the
        type.
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
        """Returns the type, tf32 for single precision on an unknown unit: the utilisation is then not too high."""
        is_open = precision.dtype == "fp32" and precision.unit == "unknown" and "tf32" in self.tflops
        return Precision("tensor", "tf32") if is_open else precision


def dense_peaks_of(trace: Trace) -> DensePeaks | None:
    """Returns the peaks of the device that did the work: the trace's device, or the CPU; None if they are not known."""
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
