"""The origin of a recording, its judged window, and the job to which it belongs.

The origin is the rank, the number of ranks, the device and the program. The window (the judged part) has its steps and
their times.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.arrays import distinct_values, percentile
from tb_bottleneck.base.measure import Record
from tb_bottleneck.base.units import duration_text
from tb_bottleneck.bottlenecks.texts import telemetry_advice
from tb_bottleneck.quality.trace_defects import Defect
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.trace.frames import program_file
from tb_bottleneck.trace.header import Header
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.steps import step_numbers
from tb_bottleneck.trace.trace import Trace

# torch numbers the process groups in the order of their creation (torch/distributed/distributed_c10d.py).
_DEFAULT_GROUP = "0"


def membership_of(recording: Recording) -> pb.Membership | None:
    """Returns the facts that show to which job a recording belongs; None if the recording is not a rank of a job."""
    header, steps = recording.trace.header, recording.steps
    if header.rank is None or (header.world_size or 1) < 2:
        return None
    numbers = step_numbers(recording.trace, steps)
    return pb.Membership(
        begin_ns=header.base_time_ns + steps.begin,
        end_ns=header.base_time_ns + steps.end,
        first_step=numbers[0] if numbers else None,
        last_step=numbers[-1] if numbers else None,
        default_group=_default_group(header),
    )


def _default_group(header: Header) -> str:
    group = next((group for group in header.groups if group.name == _DEFAULT_GROUP), None)
    if group is None:
        return ""
    return hashlib.sha256(repr((group.size, group.ranks)).encode()).hexdigest()[:16]


MAX_STEP_TIMES = 60
"""Number of step times that a report shows."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Window(Record, frozen=True):
    """The judged part of a recording: [begin, end) in ns, on the clock of the trace, or since 1970 for telemetry.

    `steps` is the number of judged steps. `basis` says how they were found: profiler_step (marked by the profiler),
    inferred (from repetition), step_clock (timed by the monitor), or whole if there are no steps. `spread` is the 10th
    percentile, the median and the 90th percentile of the step times in ns; None if no step was recorded. `step_times`
    has at most MAX_STEP_TIMES times in ns, each the longest of a group of neighbouring steps, so that rare long steps
    are included. If the time of the profiler itself was removed, `recorded_mean` is the mean step time in ns before the
    removal, and `correction` a sentence about the removal. `mean_error` is the standard error of the mean step as a
    share of it; None if not known.
    """

    steps: int
    basis: str
    begin: int
    end: int
    spread: tuple[float, float, float] | None
    step_times: tuple[float, ...]
    recorded_mean: float | None = None
    correction: str = ""
    mean_error: float | None = None


def trace_window(recording: Recording) -> Window:
    """Returns the part of a trace that the report judges."""
    steps = recording.steps
    durations = steps.durations.astype(np.float64)
    return Window(
        steps=len(steps),
        basis=steps.basis,
        begin=int(steps.begin),
        end=int(steps.end),
        spread=spread_of(durations),
        step_times=longest_of_neighbours(durations),
        recorded_mean=float(recording.as_recorded.steps.durations.mean()) if recording.correction is not None else None,
        correction=correction_text(recording),
    )


def correction_text(recording: Recording) -> str:
    """Returns sentences about the profiler's time that was removed from the recording; empty if none was removed."""
    correction = recording.correction
    if correction is None:
        return ""
    texts = telemetry_advice().cross_check
    recorded, count = recording.as_recorded.steps.durations.mean(), len(recording.steps)
    stackless = recording.trace.stackless
    sentences = ["corrected"]
    if correction.waits:
        sentences.append("waits_longer")
    if correction.dispatch:
        sentences.append("launches_delayed")
    if correction.costs is not None:
        sentences.append("costs_measured" if correction.costs.measured else "costs_estimated")
    sentences.append("costs_adjusted" if correction.solved else "costs_uncertain")
    if correction.costs is not None and stackless is not None:
        sentences.append("costs_compared")
    times = {"recorded": float(recorded), "removed": correction.removed / count, "waits": correction.waits / count}
    figures = {name: duration_text(time) for name, time in times.items()}
    figures["version"] = correction.costs.version if correction.costs is not None else ""
    if stackless is not None:
        more = len(stackless.edges) - 1
        figures["more"] = f"{more} more step{'' if more == 1 else 's'}"
    return " ".join(texts[name].safe_substitute(figures) for name in sentences)


def spread_of(times: Floats, counts: Ints | None = None) -> tuple[float, float, float]:
    """Returns the 10th percentile, the median and the 90th percentile of `times`; `counts` are weights, if given."""
    return percentile(times, 10, counts), percentile(times, 50, counts), percentile(times, 90, counts)


def longest_of_neighbours(times: Floats) -> tuple[float, ...]:
    """Returns at most MAX_STEP_TIMES of `times`: the longest of each group of neighbouring times."""
    group = -(-len(times) // MAX_STEP_TIMES)
    return tuple(np.maximum.reduceat(times, np.arange(0, len(times), group)).tolist())


MAX_DEVICE_NAME = 200
MAX_TEXT = 100
WINDOWS = "Windows"
"""The fact `os` of a program on Windows, as Python's platform.system names it."""


class ReportedDevice(Record, frozen=True):
    """The device that the report is about; `count` is the number of devices that did work."""

    name: str = ""
    kind: str = ""
    index: int = 0
    count: int = 0


@dataclass(frozen=True)
class Origin:
    """The rank, the device and the program of a recording.

    `rank` and `world_size` are None if they are not known. `revision` is the commit of the program's repository.
    `program` is a hash of the program's name and a hash of its arguments, joined by `-`. `program_file` is the file
    that Python runs, as its frames name it. Each is empty if not known.
    `on_windows` is True if the program is known to run on Windows.
    """

    rank: int | None
    world_size: int | None
    device: ReportedDevice
    revision: str = ""
    program: str = ""
    program_file: str = ""
    on_windows: bool = False


def trace_origin(trace: Trace, fatal: Defect | None) -> Origin:
    """Returns the origin of a trace. `fatal` is the defect that prevents a diagnosis, if there is one."""
    header, single = trace.header, not trace.header.distributed
    return Origin(
        rank=header.rank or 0 if single or header.rank is not None else None,
        world_size=header.world_size or 1 if single or header.world_size is not None else None,
        device=_device(trace, fatal),
        revision=text_fact(header.context, "git_revision"),
        program=text_fact(header.context, "program"),
        program_file=program_file(trace),
        on_windows=header.context.get("os") == WINDOWS,
    )


def text_fact(facts: Mapping[str, object], name: str) -> str:
    """Returns the text `facts[name]`, at most MAX_TEXT characters; "" if it is missing or not printable. The text is
    untrusted."""
    value = facts.get(name)
    text = value if isinstance(value, str) else ""
    return text[:MAX_TEXT] if text.isprintable() else ""


def unused_device(trace: Trace) -> ReportedDevice:
    """Returns the first device that the trace describes, for a trace in which no device did work: `count` is 0."""
    facts = trace.header.devices[0]
    return ReportedDevice(name=facts.name, kind=_gpu_kind(trace), index=facts.index)


def _device(trace: Trace, fatal: Defect | None) -> ReportedDevice:
    header = trace.header
    used = distinct_values(trace.all_device_ops.device)
    if len(used):
        facts = header.device(trace.device_index)
        return ReportedDevice(facts.name if facts else "", _gpu_kind(trace), trace.device_index, len(used))
    if fatal is not None and (fatal.code != "insufficient_data" or header.devices):
        # The run may have used a device whose work was not recorded. If the trace describes a device, this device is
        # named. Otherwise, no device is named, not even the CPU.
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
