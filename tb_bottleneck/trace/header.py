"""The metadata of a trace, from the top-level keys of its file that are known here.

All other top-level keys (hosts, users, environment variables, tokens) are private. Their values are neither stored nor
shown.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_DEVICES = 1024
# Most process groups, and most ranks in a group. A rank of a large job is in a few dozen groups. The default group of
# the largest jobs has about MAX_RANKS ranks.
MAX_GROUPS, MAX_RANKS = 512, 1 << 17
# Salt of the hashes of host names, so that lists of hashes made for other programs do not reveal a name.
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
    """The description of one device, from the key deviceProperties. A field is None if the trace has no such value."""

    index: int
    name: str
    multiprocessors: int | None
    capability: tuple[int, int] | None = None  # CUDA only; ROCm writes something else there
    memory: int | None = None  # bytes


@dataclass(frozen=True)
class ProcessGroup:
    """A process group that this rank is a member of, from pg_config. Name and description are untrusted text."""

    name: str
    description: str
    ranks: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class Header:
    """The part of a trace's metadata that contains nothing private.

    `context` has the facts that the training process added to the trace.
    """

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
    """The time, in ns since 1970, at which the clock of the trace is 0. If it is 0, times of the trace are absolute."""

    host: str = ""
    """Hash of the host's name, equal in all recordings of one host; empty if not recorded."""

    def device(self, index: int) -> DeviceFacts | None:
        """Returns the device with this index, or None if the trace does not describe that device.

        ROCm uses two numberings: descriptions count only the visible devices, but operations count all devices of the
        machine. Therefore, if no description has this index and all described devices have the same name, the first one
        is returned.
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
    """Yields the process groups in `raw`, the value of pg_config (kineto libkineto/src/output_json.cpp).

    The lists of ranks in pg_config are complete. A longer list than MAX_RANKS is ignored.
    """
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
    """Returns the number of multiprocessors (numSms) of a device; None if it is missing or zero.

    The Python exporter of torch 2.13 (_chrome_trace_export.py) writes this number as maxThreadsPerMultiprocessor. A
    value below FEWEST_THREADS cannot be a number of threads, so it is the number of multiprocessors.
    """
    count = _whole(entry.get("numSms"))
    if count is None and (misnamed := _whole(entry.get("maxThreadsPerMultiprocessor"))) is not None:
        count = misnamed if misnamed < FEWEST_THREADS else None
    return count or None


def _capability(entry: dict[str, Any]) -> tuple[int, int] | None:
    major, minor = _whole(entry.get("computeMajor")), _whole(entry.get("computeMinor"))
    return None if major is None or minor is None else (major, minor)


def _context(raw: object) -> dict[str, Any]:
    """Returns the facts that the training process added: the value of "context" in `raw`, or {} if there is none.

    `raw` is a dict or the JSON text of a dict.
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
    """Returns the first `length` characters of `value`; empty if `value` is not text.

    Characters that UTF-8 cannot encode are replaced.
    """
    return value[:length].encode("utf-8", "replace").decode() if isinstance(value, str) else ""
