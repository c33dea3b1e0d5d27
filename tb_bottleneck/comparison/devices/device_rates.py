"""Models a device for predictions: its rates, number of multiprocessors and links. The device is that of a recording,
or is given by its name."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches

from tb_bottleneck.base.calibration_store import calibrated_gpus
from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.comparison.texts.value_text import sanitize
from tb_bottleneck.knowledge.catalogue import Precision
from tb_bottleneck.knowledge.gpus import (
    GIGA,
    USABLE_LINK_SHARE,
    Gpu,
    entries,
    gpu_named,
    lane_rates,
    multiprocessors_of,
)
from tb_bottleneck.roofline.device_peaks import CALIBRATION, DATA_SHEET, Peaks, calibration, measured_peaks, peaks_of
from tb_bottleneck.trace.trace import Trace

# An idle link runs at an older generation to save power, so a lower recorded generation is not used.
MIN_GENERATION = 3
MAX_LANES = 32  # of a PCIe slot (base specification)
# Share of the data sheet's bandwidth that copies within a device reach: 85 to 92 % were measured. Calibrations measure
# such copies.
COPY_EFFICIENCY = 0.88
BY_MEASUREMENT, BY_DATA_SHEET = "measurement", "data sheets"
MAX_SUGGESTIONS = 3  # names in an error message
SUGGESTION_CUTOFF = 0.6  # difflib's own default
VENDOR_PREFIXES = ("", "nvidia", "geforce", "nvidiageforce", "amdinstinct")  # parts that users leave out of a name
NAME_HINT = 'use the name that torch reports, such as "NVIDIA H200"'
VECTOR_FP32 = Precision("vector", "fp32")


@dataclass(frozen=True)
class DeviceModel:
    """The rates, number of multiprocessors and links of a device. Values are None if not known.

    `tensor` has the peak rates of the matrix units in TFLOP/s by type (without sparsity), `vector` is that of the
    vector units in fp32. `bandwidth` is that of the device memory in GB/s. `achievable` is the share of the tensor
    rates that the best matrix multiplication reaches; 1 if the rates were measured on the device. `link` (host to
    device) and `peers` (device to device) are in GB/s in one direction.
    """

    name: str
    tensor: Mapping[str, float]
    vector: float | None
    bandwidth: float
    achievable: float | None
    multiprocessors: int | None
    link: float | None
    peers: float | None
    basis: str = BY_DATA_SHEET  # the source of the rates

    @property
    def copy_bandwidth(self) -> float:
        """The bandwidth in GB/s that a copy in device memory reaches: the measured one, or COPY_EFFICIENCY times that
        of the data sheet."""
        return self.bandwidth if self.basis == BY_MEASUREMENT else self.bandwidth * COPY_EFFICIENCY

    @property
    def vendor(self) -> str:
        """The vendor, "AMD" or "NVIDIA". The vendor is AMD if the matrix units have a rate for fp32 ("fp32_matrix"),
        because those of NVIDIA round fp32 to TF32, or if the name begins with "AMD"."""
        return "AMD" if "fp32_matrix" in self.tensor or self.name.startswith("AMD") else "NVIDIA"

    def rate(self, precision: Precision | None) -> float | None:
        """Returns the peak rate in TFLOP/s for kernels of this precision; None if not available or not known.

        The rate is not multiplied by `achievable`.
        """
        if precision is None or precision.dtype is None:
            return None
        if precision.unit == "vector":
            return self.vector if precision.dtype in ("fp32", "fp16", "bf16") else None
        return self.tensor.get("fp32_matrix" if precision.dtype == "fp32" else precision.dtype)


def device_of(trace: Trace) -> DeviceModel | None:
    """Returns the judged device of `trace`, with measured rates if the user calibrated it. Returns None if the trace
    has no device work, or if the rates of its device are not known."""
    facts, peaks = trace.header.device(trace.device_index), peaks_of(trace)
    if facts is None or peaks is None or not len(trace.device_ops):
        return None
    gpu = gpu_named(facts.name)
    measured = calibration(trace).get("h2d_pinned_bytes_per_s")
    link = measured / GIGA if measured else _link(gpu)
    peers = gpu.nvlink if gpu is not None else None
    if gpu is None or peaks.basis == CALIBRATION:
        return _of_peaks(sanitize(facts.name), peaks, trace.multiprocessors, link, peers)
    return _by_sheet(sanitize(facts.name), gpu, trace.multiprocessors or multiprocessors_of(gpu.name))


def calibrated_device(name: str) -> DeviceModel | None:
    """Returns the device with the name `name`, as torch reports it, with the rates that the user measured with
    `tb-bottleneck doctor`; None if it was not calibrated."""
    measured = calibrated_gpus().get(name)
    gpu = gpu_named(name)
    peaks = None if measured is None else measured_peaks(gpu, DATA_SHEET, measured)
    if measured is None or peaks is None or peaks.basis != CALIBRATION:
        return None
    # The link of the best slot is used, as the texts say, because the calibration measured the link of the user's slot.
    peers = gpu.nvlink if gpu is not None else None
    processors = multiprocessors_of(gpu.name) if gpu is not None else None
    return _of_peaks(sanitize(name), peaks, processors, _link(gpu), peers)


def device_by_sheet(trace: Trace) -> DeviceModel | None:
    """Returns the judged device of `trace` with the rates of its data sheet, even if it was calibrated. Returns None if
    the trace has no device work, or if gpus.toml does not list the device."""
    facts = trace.header.device(trace.device_index)
    gpu = gpu_named(facts.name) if facts is not None and len(trace.device_ops) else None
    if facts is None or gpu is None:
        return None
    return _by_sheet(sanitize(facts.name), gpu, trace.multiprocessors or multiprocessors_of(gpu.name))


def device_named(name: str) -> DeviceModel:
    """Returns the device that torch and NVML report as `name`, or that gpus.toml names `name`, with the rates of its
    data sheet. Case, spaces and the vendor in `name` do not matter. If the device is not listed, returns the device of
    this name that the user calibrated.

    Raises:
        NotFound: the device is neither listed nor calibrated; the message contains the most similar names.
    """
    by_name = {_plain(spelt): entry.gpu for entry in entries() for spelt in (*entry.examples, entry.gpu.name)}
    spellings = [f"{vendor}{_plain(name)}" for vendor in VENDOR_PREFIXES]
    gpu = gpu_named(name) or next((by_name[spelt] for spelt in spellings if spelt in by_name), None)
    if gpu is None:
        if (measured := calibrated_device(name)) is not None:
            # The other device has rates of its data sheet. Therefore, the measured bandwidth of copies is converted to
            # that of a data sheet, of which copies reach only a part.
            return replace(measured, bandwidth=measured.bandwidth / COPY_EFFICIENCY, basis=BY_DATA_SHEET)
        similar = _near(name)
        raise NotFound(
            f"no device is listed as {name!r}; " + (f"did you mean {' or '.join(similar)}?" if similar else NAME_HINT)
        )
    return _by_sheet(gpu.name, gpu, multiprocessors_of(gpu.name))


def with_article(name: str) -> str:
    """Returns the name of a device with its indefinite article, as in "an NVIDIA H200"."""
    vowel = name[:1] in "AEFHILMNORSX" if name[:2].isupper() or name[1:2].isdigit() else name[:1] in "AEIOU"
    return f"{'an' if vowel else 'a'} {name}"


def unknown_device_reason(trace: Trace) -> str:
    """Returns a sentence that says why the device of `trace` is unknown, and how to identify it."""
    facts = trace.header.device(trace.device_index)
    if not len(trace.device_ops):
        return "The work ran on the CPU: there are no kernels to scale to another device."
    if facts is None:
        return (
            "The recording does not name its device, so its kernels cannot be scaled; torch 1.9 and later write the "
            "name to each trace (deviceProperties)."
        )
    return (
        f"The device {sanitize(facts.name)!r} is not listed, so its kernels cannot be scaled. "
        "`tb-bottleneck doctor` measures it; with torch 2.7 and later, the monitor records its clocks."
    )


def _near(name: str) -> list[str]:
    """Returns at most MAX_SUGGESTIONS listed names that contain `name`. If there are none, returns names with a similar
    spelling, compared without the names of vendors."""
    names = {_plain(spelt): spelt for entry in entries() for spelt in entry.examples}
    containing = [spelt for plain, spelt in names.items() if _plain(name) and _plain(name) in plain][:MAX_SUGGESTIONS]
    bare = {_bare(plain): spelt for plain, spelt in names.items()}
    return containing or [
        bare[match]
        for match in get_close_matches(_bare(_plain(name)), bare, n=MAX_SUGGESTIONS, cutoff=SUGGESTION_CUTOFF)
    ]


def _bare(plain: str) -> str:
    """Returns `plain`, a result of _plain, without the name of the vendor, which would make different names similar."""
    vendor = max((vendor for vendor in VENDOR_PREFIXES if plain.startswith(vendor)), key=len)
    return plain.removeprefix(vendor)


def _plain(name: str) -> str:
    """Returns `name` without spaces and in lower case, for comparisons."""
    return name.lower().replace(" ", "")


def speed_ratio(a: DeviceModel, b: DeviceModel, precision: Precision | None) -> float | None:
    """Returns (arithmetic rate of `b` / arithmetic rate of `a`) for kernels of this precision; None if a rate is not
    known.

    If the matrix units of `b` do not support the type, the rate of `b` is that of its vector units in fp32.
    """
    on_a, on_b = a.rate(precision), b.rate(precision)
    if on_a is None or precision is None:
        return None
    if on_b is None:
        return b.vector / on_a if b.vector else None
    if precision.unit != "tensor" or a.achievable is None or b.achievable is None:
        return on_b / on_a  # an achievable rate is unknown, so peaks are compared
    return on_b * b.achievable / (on_a * a.achievable)


def _of_peaks(name: str, peaks: Peaks, processors: int | None, link: float | None, peers: float | None) -> DeviceModel:
    """Returns a device with the rates `peaks`, which were measured, or computed from clock rates and numbers of units.

    In the latter case, `achievable` is None. `processors` is the number of multiprocessors; `link` and `peers` are in
    GB/s.
    """
    measured = peaks.basis == CALIBRATION
    basis = BY_MEASUREMENT if measured else "clocks and units"
    achievable = 1.0 if measured else None
    return DeviceModel(name, peaks.tensor, peaks.vector, peaks.bandwidth, achievable, processors, link, peers, basis)


def _by_sheet(name: str, gpu: Gpu, processors: int | None) -> DeviceModel:
    """Returns a device with the rates of its data sheet, `gpu`. `processors` is the number of multiprocessors; None if
    it is not known."""
    tensor = {unit: rate for unit, rate in gpu.tflops.items() if unit != "fp32"}
    return DeviceModel(
        name, tensor, gpu.tflops.get("fp32"), gpu.bandwidth, gpu.achievable, processors, _link(gpu), gpu.nvlink
    )


def _link(gpu: Gpu | None) -> float | None:
    """Returns the usable rate in GB/s of the best PCIe slot for the listed device `gpu`; None if the rate or the device
    is not known."""
    if gpu is None:
        return None
    return link_rate(gpu.pcie.generation or 0, gpu.pcie.lanes or 0)


def link_rate(generation: int, lanes: int) -> float | None:
    """Returns the usable rate of a PCIe link in one direction, in GB/s. Returns None for a generation below
    MIN_GENERATION or one that is not listed, and for more than MAX_LANES lanes."""
    lane = lane_rates().get(generation) if generation >= MIN_GENERATION else None
    return lane * lanes * USABLE_LINK_SHARE if lane is not None and 0 < lanes <= MAX_LANES else None
