"""The origin of a recording: the rank, the number of ranks, and the device."""

from collections.abc import Mapping
from dataclasses import dataclass

from tb_bottleneck.base.order_statistics import distinct_values
from tb_bottleneck.base.record import Record
from tb_bottleneck.quality.trace_defects import Defect
from tb_bottleneck.trace.header import Header
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.trace import Trace

MAX_DEVICE_NAME = 200
MAX_REVISION = 100
WINDOWS = "Windows"
"""The fact `os` of a program on Windows, as Python's platform.system names it."""


class ReportedDevice(Record, frozen=True):
    """The device that the account is about; `count` is the number of devices that did work."""

    name: str = ""
    kind: str = ""
    index: int = 0
    count: int = 0


@dataclass(frozen=True)
class Origin:
    """The rank, the device and the program of a recording. `rank` and `world_size` are None if they are not known,
    `revision` (of the program's repository) is then empty. `on_windows` is True if it is known to run there."""

    rank: int | None
    world_size: int | None
    device: ReportedDevice
    revision: str = ""
    on_windows: bool = False


def trace_origin(trace: Trace, fatal: Defect | None) -> Origin:
    """Returns the origin of a trace. `fatal` is the defect that prevents a diagnosis, if there is one."""
    header, single = trace.header, not trace.header.distributed
    return Origin(
        rank=header.rank or 0 if single or header.rank is not None else None,
        world_size=header.world_size or 1 if single or header.world_size is not None else None,
        device=_device(trace, fatal),
        revision=revision_of(header.context),
        on_windows=header.context.get("os") == WINDOWS,
    )


def revision_of(facts: Mapping[str, object]) -> str:
    """Returns the git revision in the facts of a training, or an empty text. It is untrusted: it may be any text."""
    revision = facts.get("git_revision")
    text = revision if isinstance(revision, str) else ""
    return text[:MAX_REVISION] if text.isprintable() else ""


def unused_device(trace: Trace) -> ReportedDevice:
    """Returns the device that is present and did nothing: `count` is 0."""
    facts = trace.header.devices[0]
    return ReportedDevice(name=facts.name, kind=_gpu_kind(trace), index=facts.index)


def _device(trace: Trace, fatal: Defect | None) -> ReportedDevice:
    header = trace.header
    used = distinct_values(trace.all_device_ops.device)
    if len(used):
        facts = header.device(trace.device_index)
        return ReportedDevice(facts.name if facts else "", _gpu_kind(trace), trace.device_index, len(used))
    if fatal is not None and (fatal.code != "insufficient_data" or header.devices):
        # The run may have used a device whose work was not recorded. If it is described, it is named; otherwise no
        # device is claimed, not even the CPU.
        name = header.devices[0].name if header.devices else ""
        foreign = bool((trace.events.kind == Kind.FOREIGN_DEVICE).any())
        return ReportedDevice(name, ("other" if foreign else _gpu_kind(trace)) if name else "")
    return ReportedDevice(_cpu_name(header), "cpu", count=1)


def _gpu_kind(trace: Trace) -> str:
    calls = (trace.names[name] for name in distinct_values(trace.calls.name).tolist())
    return "rocm" if trace.header.rocm or any(name.startswith("hip") for name in calls) else "cuda"


def _cpu_name(header: Header) -> str:
    name = header.context.get("device_name")
    return name[:MAX_DEVICE_NAME] if isinstance(name, str) and header.context.get("device_kind") == "cpu" else "CPU"
