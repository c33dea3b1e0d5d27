"""Facts that the training process added to a trace: checks numbers, and adds the log of torch.compile and the pace of
the host from files beside the trace.

Numbers in a trace are untrusted.
"""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from tb_bottleneck.base.units import NS_PER_US
from tb_bottleneck.sources.telemetry.beside_trace import MEMORY, RunBeside, run_beside
from tb_bottleneck.sources.torch_trace.log_file import log_beside
from tb_bottleneck.trace.columns.labels import Thread
from tb_bottleneck.trace.events import Events
from tb_bottleneck.trace.header import Header

# Parts of the names of events that show compiled code: regions of compiled code, phases of compiling, and torch's
# wrapper of a compiled function.
_MARKS = ("Torch-Compiled Region", "(dynamo_timed)", "torch/_dynamo/eval_frame.py")


def add_compile_log(path: str, header: Header, events: Events, names: Sequence[str], threads: Sequence[Thread]) -> None:
    """Adds the fact `compile_log` to `header.context`: the log of torch.compile for this process.

    Nothing is added if the trace shows no compiled code, if there is no log in the folder of the trace at `path`, or if
    the monitor has already recorded the log.
    """
    if header.context.get("compile_log") or not any(mark in name for name in names for mark in _MARKS):
        return
    processes = {int(thread.process) for thread in threads if thread.process.isdecimal() and len(thread.process) < 11}
    base, end = header.base_time_ns, int(events.end[:].max()) if len(events) else 0
    log = log_beside(path, processes, header.rank, (base + end) / NS_PER_US if base else None)
    if log:
        header.context["compile_log"] = log


HOST_PACE, HOST_PHASES, DEVICE_MEMORY = "host_pace_ns", "host_phases_ns", "device_memory_bytes"


def add_run(path: str, header: Header) -> None:
    """Adds what the telemetry beside the trace at `path` says, if the trace is of a device. HOST_PACE: the times (ns)
    of steps in which the device did not hold the host back, shortest first. HOST_PHASES: the median times (ns) of their
    phases by name. DEVICE_MEMORY: the most bytes in use by all
    processes, and by torch in this process."""
    found = run_beside(path) if header.devices and HOST_PACE not in header.context else RunBeside()
    if found.host_pace:
        header.context[HOST_PACE], header.context[HOST_PHASES] = list(found.host_pace), dict(found.host_phases)
    if len(found.memory) == len(MEMORY):
        header.context[DEVICE_MEMORY] = [found.memory[name] for name in MEMORY]


# Bytes of an element, for the types that parameters with gradients can have (pytorch docs, Tensor Attributes).
BYTES_OF_TYPE = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "complex64": 8, "complex128": 16}


def positive(value: Any) -> float | None:
    """Returns `value` as a float if it is a positive finite number (not a bool), otherwise None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) and number > 0 else None


def parameters_in_fp32(by_type: Any) -> float | None:
    """Returns the share (0 to 1) of the parameters that have the type float32; None if no count in `by_type` is usable.

    `by_type` maps the name of a type, such as "float32", to the number of parameters with this type.
    """
    counts = _counts(by_type)
    return counts.get("float32", 0.0) / sum(counts.values()) if counts else None


def parameter_bytes(by_type: Any) -> float | None:
    """Returns the size of all parameters in bytes; None if no count is usable or the size of a type is unknown.

    `by_type` maps the name of a type, such as "float32", to the number of parameters with this type.
    """
    counts = _counts(by_type)
    if not counts or not counts.keys() <= BYTES_OF_TYPE.keys():
        return None
    return sum(count * BYTES_OF_TYPE[name] for name, count in counts.items())


def _counts(by_type: Any) -> dict[str, float]:
    """Returns the entries of `by_type` whose counts are positive numbers; empty if `by_type` is not a dict."""
    if not isinstance(by_type, dict):
        return {}
    counts = {str(name): positive(count) for name, count in by_type.items()}
    return {name: count for name, count in counts.items() if count is not None}
