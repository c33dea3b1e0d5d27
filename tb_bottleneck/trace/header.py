"""What a recording says about itself, picked from its top-level keys.

Everything else up there (hosts, users, environment variables, tokens) is private: it is neither kept nor shown.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_DEVICES = 1024
# No multiprocessor holds fewer threads (CUDA C++ Programming Guide, compute capabilities: 1024 and more).
FEWEST_THREADS = 512
# Numbers as the libraries spell them: CUDA's 12040 is 12.4.
VERSIONS = (
    "cuda_runtime_version",
    "cuda_driver_version",
    "cupti_version",
    "hip_runtime_version",
    "hip_driver_version",
    "roctracer_version",
)


@dataclass(frozen=True)
class DeviceFacts:
    """One entry of deviceProperties."""

    index: int
    name: str
    multiprocessors: int | None
    capability: tuple[int, int] | None = None  # CUDA's; what ROCm writes there is no capability


@dataclass(frozen=True)
class Header:
    """The safe part of a trace's head. `context` is what the training process added under the key tb_bottleneck."""

    devices: tuple[DeviceFacts, ...]
    rocm: bool
    distributed: bool
    rank: int | None
    world_size: int | None
    backend: str
    stacks_recorded: bool
    context: dict[str, Any]
    versions: Mapping[str, int] = field(default_factory=dict)  # by the names in VERSIONS

    def device(self, index: int) -> DeviceFacts | None:
        """The device with this index, None where the trace does not describe it.

        ROCm counts the devices it describes from those that are visible, and those that work from all of the machine:
        where all that are described are alike, any description will do.
        """
        alike = self.devices[0] if len({device.name for device in self.devices}) == 1 else None
        return next((device for device in self.devices if device.index == index), alike)


def read_header(raw: dict[str, Any]) -> Header:
    """Picks what is used; whatever is missing or of another type than it should be is left out."""
    distributed = raw.get("distributedInfo")
    about = distributed if isinstance(distributed, dict) else {}
    return Header(
        devices=tuple(_devices(raw.get("deviceProperties"))),
        rocm=any(key.startswith(("hip_", "roctracer_", "rocprofiler")) for key in raw),
        distributed=bool(about),
        rank=_whole(about.get("rank")),
        world_size=_whole(about.get("world_size")),
        backend=_text(about.get("backend"), 40),
        stacks_recorded=raw.get("with_stack") == 1,
        context=_context(raw.get("tb_bottleneck")),
        versions={name: value for name in VERSIONS if (value := _whole(raw.get(name)))},
    )


def _devices(raw: object) -> list[DeviceFacts]:
    if not isinstance(raw, list):
        return []
    found = []
    for position, entry in enumerate(raw[:MAX_DEVICES]):
        if isinstance(entry, dict):
            index = _whole(entry.get("id"))
            found.append(
                DeviceFacts(
                    index=position if index is None else index,
                    name=_text(entry.get("name"), 200),
                    multiprocessors=_multiprocessors(entry),
                    capability=_capability(entry),
                )
            )
    return found


def _multiprocessors(entry: dict[str, Any]) -> int | None:
    """numSms; torch's own exporter in Python writes it under another name (_chrome_trace_export.py of torch 2.13)."""
    told = _whole(entry.get("numSms"))
    if told is None and (misnamed := _whole(entry.get("maxThreadsPerMultiprocessor"))) is not None:
        return misnamed if misnamed < FEWEST_THREADS else None
    return told


def _capability(entry: dict[str, Any]) -> tuple[int, int] | None:
    major, minor = _whole(entry.get("computeMajor")), _whole(entry.get("computeMinor"))
    return None if major is None or minor is None else (major, minor)


def _context(raw: object) -> dict[str, Any]:
    """The facts the training process added: an object, or its JSON text, with the facts under "context"."""
    if isinstance(raw, str):
        try:
            raw = json.loads(raw)
        except (ValueError, RecursionError):
            return {}
    context = raw.get("context") if isinstance(raw, dict) else None
    return context if isinstance(context, dict) else {}


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None


def _text(value: object, length: int) -> str:
    """Text that can be encoded, kept by its beginning; empty where there is none."""
    return value[:length].encode("utf-8", "replace").decode() if isinstance(value, str) else ""
