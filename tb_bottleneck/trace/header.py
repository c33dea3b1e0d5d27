"""The trace's own description, from its top-level keys.

All other top-level keys (hosts, users, environment variables, tokens) are private: they are neither stored nor shown.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_DEVICES = 1024
# A rank of a large job is in a few dozen groups; the default group of the largest jobs has this many ranks.
MAX_GROUPS, MAX_RANKS = 512, 1 << 17
# The hash of a host's name is not reversible by a list of hashes made for another program.
_HOST_SALT = b"tb_bottleneck host:"
MAX_MEMORY = 2**50  # bytes of one device
# Every multiprocessor has at least this many threads (CUDA C++ Programming Guide, compute capabilities: 1024 or more).
FEWEST_THREADS = 512
# Version numbers in the libraries' own format: CUDA's 12040 is 12.4.
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
    """One entry of the trace's deviceProperties. A field is None if the trace does not have the value."""

    index: int
    name: str
    multiprocessors: int | None
    capability: tuple[int, int] | None = None  # CUDA only; ROCm writes something else there
    memory: int | None = None  # bytes


@dataclass(frozen=True)
class ProcessGroup:
    """One entry of pg_config: a process group that this rank is a member of. Names are untrusted text."""

    name: str
    description: str
    ranks: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class Header:
    """The part of a trace's metadata that is safe to keep. `context` has the facts that the training process added."""

    devices: tuple[DeviceFacts, ...]
    rocm: bool
    distributed: bool
    rank: int | None
    world_size: int | None
    backend: str
    stacks_recorded: bool
    more_recorded: bool
    """True if the profiler also recorded memory or shapes."""

    context: dict[str, Any]
    versions: Mapping[str, int] = field(default_factory=dict)  # by the names in VERSIONS
    groups: tuple[ProcessGroup, ...] = ()
    base_time_ns: int = 0
    """Start of the recording's own clock, in ns since 1970; 0 if the times in the trace are absolute."""

    host: str = ""
    """Hash of the host's name, equal in all recordings of one host; empty if not recorded."""

    def device(self, index: int) -> DeviceFacts | None:
        """Returns the device with this index, or None if the trace does not describe that device.

        ROCm numbers the described devices among the visible devices, but the devices of operations among all devices
        of the machine. So, if no described device has this index and all of them have one name, the first is returned.
        """
        same_for_all = self.devices[0] if len({device.name for device in self.devices}) == 1 else None
        return next((device for device in self.devices if device.index == index), same_for_all)


def read_header(raw: dict[str, Any]) -> Header:
    """Returns the header from `raw`, the top-level keys of a trace.

    A field has its empty value (None, 0, "", False or an empty container) if its key is missing or has a wrong type.
    """
    distributed = raw.get("distributedInfo")
    job = distributed if isinstance(distributed, dict) else {}
    return Header(
        devices=tuple(_devices(raw.get("deviceProperties"))),
        rocm=any(key.startswith(("hip_", "roctracer_", "rocprofiler")) for key in raw),
        distributed=bool(job),
        rank=_whole(job.get("rank")),
        world_size=_whole(job.get("world_size")),
        backend=_text(job.get("backend"), 40),
        stacks_recorded=raw.get("with_stack") == 1,
        more_recorded=raw.get("profile_memory") == 1 or raw.get("record_shapes") == 1,
        context=_context(raw.get("tb_bottleneck")) | _context(raw.get("tb_bottleneck_late")),
        versions={name: value for name in VERSIONS if (value := _whole(raw.get(name)))},
        groups=tuple(_groups(job.get("pg_config"))),
        base_time_ns=_time(raw.get("baseTimeNanoseconds")),
        host=hash_of_host(raw.get("host_name")),
    )


def _devices(raw: object) -> list[DeviceFacts]:
    if not isinstance(raw, list):
        return []
    devices = []
    for position, entry in enumerate(raw[:MAX_DEVICES]):
        if isinstance(entry, dict):
            index = _whole(entry.get("id"))
            devices.append(
                DeviceFacts(
                    index=position if index is None else index,
                    name=_text(entry.get("name"), 200),
                    multiprocessors=_multiprocessors(entry),
                    capability=_capability(entry),
                    memory=_whole(entry.get("totalGlobalMem"), MAX_MEMORY) or None,
                )
            )
    return devices


def _groups(raw: object) -> Iterator[ProcessGroup]:
    """Yields the process groups of pg_config (kineto libkineto/src/output_json.cpp), whose lists of ranks are
    complete."""
    for entry in raw[:MAX_GROUPS] if isinstance(raw, list) else ():
        if isinstance(entry, dict):
            ranks = entry.get("ranks")
            whole = ranks if isinstance(ranks, list) and len(ranks) <= MAX_RANKS else []
            members = tuple(rank for rank in whole if _whole(rank) is not None)
            size = _whole(entry.get("pg_size"))
            name, description = _text(entry.get("pg_name"), 100), _text(entry.get("pg_desc"), 100)
            yield ProcessGroup(name, description, members, len(members) if size is None else size)


def hash_of_host(name: object) -> str:
    """Returns a hash of a host's name as 16 hexadecimal digits; "" if `name` is not a text or is empty."""
    if not isinstance(name, str) or not name:
        return ""
    return hashlib.sha256(_HOST_SALT + name.encode("utf-8", "replace")).hexdigest()[:16]


def _time(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62 else 0


def _multiprocessors(entry: dict[str, Any]) -> int | None:
    """Returns numSms, which torch's Python exporter writes under another name (_chrome_trace_export.py of torch 2.13).

    None if it is missing or zero, which is not a count.
    """
    count = _whole(entry.get("numSms"))
    if count is None and (misnamed := _whole(entry.get("maxThreadsPerMultiprocessor"))) is not None:
        count = misnamed if misnamed < FEWEST_THREADS else None
    return count or None


def _capability(entry: dict[str, Any]) -> tuple[int, int] | None:
    major, minor = _whole(entry.get("computeMajor")), _whole(entry.get("computeMinor"))
    return None if major is None or minor is None else (major, minor)


def _context(raw: object) -> dict[str, Any]:
    """Returns the facts that the process added: the value of "context" in `raw`, an object or its JSON text.

    Empty if there is none.
    """
    if isinstance(raw, str):
        try:
            raw = json.loads(raw)
        except (ValueError, RecursionError):
            return {}
    context = raw.get("context") if isinstance(raw, dict) else None
    return context if isinstance(context, dict) else {}


def _whole(value: object, limit: int = 2**31) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < limit else None


def _text(value: object, length: int) -> str:
    """Returns at most `length` characters of `value`, all of which can be encoded as UTF-8; empty if `value` is not
    text."""
    return value[:length].encode("utf-8", "replace").decode() if isinstance(value, str) else ""
