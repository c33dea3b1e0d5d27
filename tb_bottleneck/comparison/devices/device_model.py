"""A device as far as a prediction needs it: its rates, its size, its links; of a recording, or by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from tb_bottleneck.comparison.texts.sanitize import sanitize
from tb_bottleneck.errors import NotFound
from tb_bottleneck.knowledge.gpus import Gpu, entries, gpu_named, multiprocessors_of
from tb_bottleneck.knowledge.pcie import USABLE_LINK_SHARE, lane_rates
from tb_bottleneck.knowledge.precisions import Precision
from tb_bottleneck.roofline.device_peaks import CALIBRATION, Peaks, calibration, peaks_of
from tb_bottleneck.trace.trace import Trace

GIGA = 1e9
# A link that runs at an older generation saves power: it says nothing about copies.
MIN_GENERATION = 3
MAX_LANES = 32  # of a PCIe slot (base specification)
# What copies within a device reach of its data sheet: 85 to 92 %. Calibrations are of such copies.
COPY_EFFICIENCY = 0.88
BY_MEASUREMENT, BY_DATA_SHEET = "what was measured", "the data sheets"
MAX_SUGGESTIONS = 3  # names that a message offers
SUGGESTION_CUTOFF = 0.6  # difflib's own limit of what counts as spelt alike
VENDOR_PREFIXES = ("", "nvidia", "geforce", "nvidiageforce", "amdinstinct")  # what people leave out of a name
NAME_HINT = 'name it as torch does, as in "NVIDIA H200"'
VECTOR_FP32 = Precision("vector", "fp32")


@dataclass(frozen=True)
class Device:
    """Rates in TFLOP/s (`tensor` by type, dense, and `vector`) and GB/s; None where not known.

    `achievable` is the share of the tensor rates that the best product reaches; rates that were measured on the device
    have it in them, and 1 there. `link` is host to device, `peers` device to device, one direction each.
    """

    name: str
    tensor: Mapping[str, float]
    vector: float | None
    bandwidth: float
    achievable: float | None
    multiprocessors: int | None
    link: float | None
    peers: float | None
    basis: str = BY_DATA_SHEET  # where the rates come from, in words

    @property
    def copied(self) -> float:
        """GB/s that a copy reaches: what was measured is that already, a data sheet's figure is more."""
        return self.bandwidth if self.basis == BY_MEASUREMENT else self.bandwidth * COPY_EFFICIENCY

    @property
    def maker(self) -> str:
        """AMD or NVIDIA: only AMD's matrix units multiply fp32 as such."""
        return "AMD" if "fp32_matrix" in self.tensor or self.name.startswith("AMD") else "NVIDIA"

    def rate(self, precision: Precision | None) -> float | None:
        """TFLOP/s for kernels of this precision, before `achievable`; None where it has none or that is not known."""
        if precision is None or precision.dtype is None:
            return None
        if precision.unit == "vector":
            return self.vector if precision.dtype in ("fp32", "fp16", "bf16") else None
        return self.tensor.get("fp32_matrix" if precision.dtype == "fp32" else precision.dtype)


def device_of(trace: Trace) -> Device | None:
    """The trace's device; None where it is not known."""
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


def device_by_sheet(trace: Trace) -> Device | None:
    """The trace's device by its data sheet, whatever was measured on it; None where it has none here."""
    facts = trace.header.device(trace.device_index)
    gpu = gpu_named(facts.name) if facts is not None and len(trace.device_ops) else None
    if facts is None or gpu is None:
        return None
    return _by_sheet(sanitize(facts.name), gpu, trace.multiprocessors or multiprocessors_of(gpu.name))


def device_named(name: str) -> Device:
    """A device of the table, by the name that torch and NVML report, or by the table's own.

    Raises:
        NotFound: nobody has written this device down; the message names the nearest ones.
    """
    known = {_plain(spelt): entry.gpu for entry in entries() for spelt in (*entry.examples, entry.gpu.name)}
    spellings = [f"{maker}{_plain(name)}" for maker in VENDOR_PREFIXES]
    gpu = gpu_named(name) or next((known[spelt] for spelt in spellings if spelt in known), None)
    if gpu is None:
        near = _near(name)
        raise NotFound(
            f"no device is known as {name!r}; " + (f"did you mean {' or '.join(near)}?" if near else NAME_HINT)
        )
    return _by_sheet(gpu.name, gpu, multiprocessors_of(gpu.name))


def with_article(name: str) -> str:
    """A device's name as it stands in a sentence: "an NVIDIA H200", "a Tesla T4"."""
    vowel = name[:1] in "AEFHILMNORSX" if name[:2].isupper() or name[1:2].isdigit() else name[:1] in "AEIOU"
    return f"{'an' if vowel else 'a'} {name}"


def unknown_device_reason(trace: Trace) -> str:
    """Why a recording's device is not known, and what would tell it: a sentence."""
    facts = trace.header.device(trace.device_index)
    if not len(trace.device_ops):
        return "The work ran on the CPU: no kernel was recorded that could be scaled to another device."
    if facts is None:
        return (
            "The recording does not name its device, so nothing can be scaled from it; torch 1.9 and later name it in "
            "each trace (deviceProperties)."
        )
    return (
        f"Nothing is known of the device {sanitize(facts.name)!r}, so nothing can be scaled from it; the monitor's "
        "`calibrate` measures it, and with torch 2.7 and later its context tells the clocks."
    )


def _near(name: str) -> list[str]:
    """The names that this one may have meant: those that hold it, else those spelt like it, makers left aside."""
    names = {_plain(spelt): spelt for entry in entries() for spelt in entry.examples}
    holding = [spelt for plain, spelt in names.items() if _plain(name) and _plain(name) in plain][:MAX_SUGGESTIONS]
    bare = {_bare(plain): spelt for plain, spelt in names.items()}
    return holding or [
        bare[one] for one in get_close_matches(_bare(_plain(name)), bare, n=MAX_SUGGESTIONS, cutoff=SUGGESTION_CUTOFF)
    ]


def _bare(plain: str) -> str:
    """A plain name without its maker's words, which are long enough to hide what follows them."""
    maker = max((maker for maker in VENDOR_PREFIXES if plain.startswith(maker)), key=len)
    return plain.removeprefix(maker)


def _plain(name: str) -> str:
    """A name as it is compared: without spaces and capitals."""
    return name.lower().replace(" ", "")


def speed_ratio(a: Device, b: Device, precision: Precision | None) -> float | None:
    """B's arithmetic rate / A's for kernels of A of this precision; None where it is not known.

    A type that B's matrix units lack runs on B's ordinary ones, as fp32.
    """
    on_a, on_b = a.rate(precision), b.rate(precision)
    if on_a is None or precision is None:
        return None
    if on_b is None:
        return b.vector / on_a if b.vector else None
    if precision.unit != "tensor" or a.achievable is None or b.achievable is None:
        return on_b / on_a  # what one sheet promises against what the other does: no better is known of one of them
    return on_b * b.achievable / (on_a * a.achievable)


def _of_peaks(name: str, peaks: Peaks, processors: int | None, link: float | None, peers: float | None) -> Device:
    """What was measured on the device, or computed from its clocks and units, which says nothing of what is reached."""
    measured = peaks.basis == CALIBRATION
    basis = BY_MEASUREMENT if measured else "clocks and units"
    achievable = 1.0 if measured else None
    return Device(name, peaks.tensor, peaks.vector, peaks.bandwidth, achievable, processors, link, peers, basis)


def _by_sheet(name: str, gpu: Gpu, processors: int | None) -> Device:
    tensor = {unit: rate for unit, rate in gpu.tflops.items() if unit != "fp32"}
    return Device(
        name, tensor, gpu.tflops.get("fp32"), gpu.bandwidth, gpu.achievable, processors, _link(gpu), gpu.nvlink
    )


def _link(gpu: Gpu | None) -> float | None:
    if gpu is None:
        return None
    return link_rate(gpu.pcie_generation or 0, gpu.pcie_lanes or 0)


def link_rate(generation: int, lanes: int) -> float | None:
    """Usable GB/s of a PCIe link in one direction; None where the generation is not known."""
    lane = lane_rates().get(generation) if generation >= MIN_GENERATION else None
    return lane * lanes * USABLE_LINK_SHARE if lane is not None and 0 < lanes <= MAX_LANES else None
