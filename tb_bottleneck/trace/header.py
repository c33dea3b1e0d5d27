"""What a recording says about itself, picked from its top-level keys.

Everything else up there (hosts, users, environment variables, tokens) is private: it is neither kept nor shown.
"""

import json
from dataclasses import dataclass
from typing import Any

MAX_DEVICES = 1024


@dataclass(frozen=True)
class DeviceFacts:
    """One entry of deviceProperties."""

    index: int
    name: str
    multiprocessors: int | None


@dataclass(frozen=True)
class Header:
    """The safe part of a trace's head. `context` is what the training process added under the key tb_bottleneck."""

    devices: tuple[DeviceFacts, ...]
    rocm: bool
    distributed: bool
    rank: int | None
    world_size: int | None
    backend: str
    shapes_recorded: bool
    stacks_recorded: bool
    context: dict[str, Any]

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
        shapes_recorded=raw.get("record_shapes") == 1,
        stacks_recorded=raw.get("with_stack") == 1,
        context=_context(raw.get("tb_bottleneck")),
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
                    multiprocessors=_whole(entry.get("numSms")),
                )
            )
    return found


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
