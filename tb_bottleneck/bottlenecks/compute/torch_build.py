"""Measures of whether the build of torch suits the machine: the BLAS library on the CPU, and the device architectures
for which torch has kernels."""

import re

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.base.measure import Measure, Missing, text_measure
from tb_bottleneck.knowledge.catalogue import load

_VERSION = re.compile(r"(\d{1,3})\.(\d{1,3})", re.ASCII)
_ARCHITECTURE = re.compile(r"^(?:sm|compute)_(\d{2,3})[af]?$", re.ASCII)


def torch_blas(recording: TelemetryRecording) -> Measure | Missing:
    """The BLAS library that torch is built with, as text."""
    return _text(recording, "torch_blas")


def processor(recording: TelemetryRecording) -> Measure | Missing:
    """The name of the processor, as text."""
    known = _text(recording, "processor")
    return known if isinstance(known, Measure) or recording.on_device else _text(recording, "device_name")


def numpy_blas(recording: TelemetryRecording) -> Measure | Missing:
    """On an Intel processor: the loaded BLAS libraries other than MKL, as text. Missing if there are none, or on
    another processor."""
    name, pools = processor(recording), recording.facts.get("blas_pools")
    entries = [pool for pool in pools if isinstance(pool, dict)] if isinstance(pools, list) else []
    others = sorted({str(pool.get("library", "")) for pool in entries if pool.get("api") == "blas"} - {"mkl", ""})
    if isinstance(name, Missing) or "intel" not in name.text.lower():
        return Missing("the processor is not known to be one of Intel")
    if not others:
        return Missing("no BLAS other than MKL is loaded")
    return text_measure(f"{', '.join(others)[:100]} on {name.text}")


def openblas_on_intel(recording: TelemetryRecording) -> Measure | Missing:
    """1 if torch multiplies matrices with OpenBLAS on an Intel processor, where MKL is faster; otherwise 0 (count)."""
    blas, name = torch_blas(recording), processor(recording)
    if isinstance(blas, Missing) or isinstance(name, Missing):
        return blas if isinstance(blas, Missing) else name
    suits = "open" not in blas.text.lower() or "intel" not in name.text.lower()
    return Measure(float(not suits), "count", source=EVIDENCE_SOURCE)


def device_architecture(recording: TelemetryRecording) -> Measure | Missing:
    """The compute capability of the device, as text."""
    return _text(recording, "device_capability")


def newest_architecture(recording: TelemetryRecording) -> Measure | Missing:
    """The newest device architecture for which this build of torch has kernels, as text: its compute capability, such
    as 9.0."""
    newest = max(_built_for(recording), default=None)
    return Missing("torch_architectures is not among the facts of the run") if newest is None else text_measure(newest)


def newer_than_torch(recording: TelemetryRecording) -> Measure | Missing:
    """1 if the device's generation is newer than all generations for which this build of torch has kernels; otherwise 0
    (count).

    The generation is the major number of the compute capability. A device runs kernels for an older minor number of its
    generation, but not kernels for an older generation (NVIDIA, CUDA compatibility).
    """
    device, newest = device_architecture(recording), newest_architecture(recording)
    if isinstance(device, Missing) or isinstance(newest, Missing):
        return device if isinstance(device, Missing) else newest
    generation = device.text.partition(".")[0]
    if not generation.isdecimal():
        return Missing("the compute capability of the device is not a number")
    newer = int(generation) > max(int(built.partition(".")[0]) for built in _built_for(recording))
    return Measure(float(newer), "count", source=EVIDENCE_SOURCE)


def first_torch_for_device(recording: TelemetryRecording) -> Measure | Missing:
    """The first release of torch that supports the device's compute capability, as text. Missing if the installed torch
    is not older than this release, or if one of the two is not known."""
    device, torch = device_architecture(recording), _text(recording, "torch")
    first = next(
        (
            entry["torch"]
            for entry in load("torch_support.toml")["generation"]
            if isinstance(device, Measure) and entry["capability"] == device.text
        ),
        None,
    )
    version = _VERSION.match(torch.text) if isinstance(torch, Measure) else None
    if first is None or version is None:
        return Missing("it is not known which release of torch the device needs, or which one runs")
    if tuple(map(int, version.groups())) >= tuple(map(int, first.split("."))):
        return Missing("torch is new enough for the device")
    return text_measure(first)


def _built_for(recording: TelemetryRecording) -> list[str]:
    """Returns a list with only the newest compute capability for which this build of torch has kernels, such as `9.0`;
    empty if the capability is unknown."""
    names = recording.facts.get("torch_architectures")
    matches = [_ARCHITECTURE.match(name) for name in names if isinstance(name, str)] if isinstance(names, list) else []
    found = [f"{match[1][:-1]}.{match[1][-1]}" for match in matches if match]
    return sorted(found, key=lambda text: tuple(map(int, text.split("."))))[-1:]


def _text(recording: TelemetryRecording, name: str) -> Measure | Missing:
    """Returns the fact `name` of the run as a text measure."""
    value = recording.facts.get(name)
    return text_measure(value[:200]) if isinstance(value, str) and value else Missing(f"{name} is not among the facts")
