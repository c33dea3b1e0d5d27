"""Changes that other tools and settings make to a recording: parts are missing or written differently.

Each function takes a decoded Kineto trace and changes it in place. The run itself is the same, so the diagnosis must
stay the same or become "cannot tell".
"""

import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any

Trace = dict[str, Any]
Event = dict[str, Any]
Perturbation = Callable[[Trace], None]

_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset")
_CALLS = ("cuda_runtime", "cuda_driver", "hip_runtime", "runtime")
_MARKS = ("user_annotation", "gpu_user_annotation")
_LINKS = ("correlation", "External id", "external id", "device", "stream", "Device", "Stream")
_SHAPES = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs", "Input dims", "Input shapes")
_STEP = re.compile(r"^ProfilerStep#?\s*(\d*)")


def category(event: Event) -> str:
    """Returns the event's category in lower case."""
    return str(event.get("cat") or "").lower()


def without_steps(trace: Trace) -> None:
    """prof.step() was not called."""
    _keep(trace, lambda event: not _STEP.match(str(event.get("name"))))


def without_annotations(trace: Trace) -> None:
    """No record_function rows: no steps, no loader, no optimizer."""
    without_steps(trace)
    names = ("enumerate(Data", "Optimizer.", "DataParallel", "DistributedDataParallel")
    _keep(trace, lambda event: category(event) not in _MARKS and not str(event.get("name")).startswith(names))


def without_stacks(trace: Trace) -> None:
    """with_stack=False."""
    trace.pop("with_stack", None)
    _keep(trace, lambda event: category(event) not in ("python_function", "python"))


def without_copies(trace: Trace) -> None:
    """Activities are filtered to kernels: no copies, no fills."""
    _keep(trace, lambda event: category(event) not in ("gpu_memcpy", "gpu_memset", "memcpy", "memset"))


def without_calls(trace: Trace) -> None:
    """No runtime and no driver rows."""
    _keep(trace, lambda event: category(event) not in _CALLS)


def without_operators(trace: Trace) -> None:
    """activities=[ProfilerActivity.CUDA]: no operators, no annotations, no Python."""
    _keep(trace, lambda event: category(event) not in ("cpu_op", "operator", "python_function", "python", *_MARKS))


def last_half_of_steps(trace: Trace) -> None:
    """The recording began later: everything before the middle ProfilerStep is removed."""
    marks = sorted(_start(event) for event in _whole(trace) if _STEP.match(str(event["name"])) and _on_host(event))
    if len(marks) > 1:
        begin = marks[len(marks) // 2]
        _keep(trace, lambda event: event.get("ph") != "X" or _start(event) >= begin)


def half_as_fast(trace: Trace) -> None:
    """Everything takes twice as long."""
    _scale(trace, 2.0)


def twice_as_fast(trace: Trace) -> None:
    """Everything takes half as long."""
    _scale(trace, 0.5)


def unknown_kernels(trace: Trace) -> None:
    """Each kernel name is replaced by an unknown one."""
    for event in _whole(trace):
        if category(event) == "kernel":
            event["name"] = f"unseen_{zlib.crc32(str(event['name']).encode()):08x}"


def only_links(trace: Trace) -> None:
    """Only the arguments that link rows are left."""
    for event in _whole(trace):
        event["args"] = {key: value for key, value in _args(event).items() if key in _LINKS}


def no_arguments(trace: Trace) -> None:
    """No arguments: nothing links a kernel to its launch."""
    for event in _whole(trace):
        event["args"] = {}


def without_shapes(trace: Trace) -> None:
    """record_shapes=False."""
    trace.pop("record_shapes", None)
    for event in _whole(trace):
        for key in _SHAPES:
            _args(event).pop(key, None)


def without_external_ids(trace: Trace) -> None:
    """Kernels are linked to calls, but not to operators."""
    for event in _whole(trace):
        for key in ("External id", "external id"):
            _args(event).pop(key, None)


def without_header(trace: Trace) -> None:
    """Top-level keys are lost, as by tools that rewrite traces: no device, no versions, no ranks."""
    events = trace["traceEvents"]
    trace.clear()
    trace["traceEvents"] = events


def only_events(trace: Trace) -> None:
    """Only complete events are left: no thread names, no flows, no instants."""
    _keep(trace, lambda event: event.get("ph") == "X")


def device_clock_behind(trace: Trace) -> None:
    """The device's clock is 15 us behind the host's: kernels seem to begin before their launch returns."""
    _shift_device(trace, -15.0)


def device_clock_ahead(trace: Trace) -> None:
    """The device's clock is 15 us ahead of the host's."""
    _shift_device(trace, 15.0)


def whole_microseconds(trace: Trace) -> None:
    """Times have no fractions, as torch before 2.4 wrote them."""
    for event in _whole(trace):
        end = _start(event) + float(event.get("dur") or 0)
        event["ts"] = int(_start(event))
        event["dur"] = int(end) - event["ts"]


def another_clock(trace: Trace) -> None:
    """Times are a day later."""
    for event in trace["traceEvents"]:
        if isinstance(event.get("ts"), int | float):
            event["ts"] += 86_400e6


def shuffled(trace: Trace) -> None:
    """The events are in another order in the file."""
    trace["traceEvents"].sort(key=lambda event: zlib.crc32(f"{event.get('ts')}{event.get('name')}".encode()))


def categories_of_torch_1_8(trace: Trace) -> None:
    """Categories and argument names are those of torch 1.8 to 1.11."""
    old = {"cpu_op": "Operator", "user_annotation": "Operator", "kernel": "Kernel", "gpu_memcpy": "Memcpy"}
    old |= {"gpu_memset": "Memset", "cuda_runtime": "Runtime", "cuda_driver": "Runtime", "python_function": "Python"}
    _keep(trace, lambda event: category(event) != "gpu_user_annotation")
    for event in _whole(trace):
        event["cat"] = old.get(category(event), event.get("cat"))
        if "External id" in _args(event):
            event["args"]["external id"] = event["args"].pop("External id")


def written_by_rocm(trace: Trace) -> None:
    """Runtime calls and copies have the names that ROCm gives them."""
    trace["hip_runtime_version"] = 60_443_483
    for event in _whole(trace):
        name = str(event["name"])
        if category(event) in _CALLS and name.startswith("cuda"):
            event["name"] = "hip" + name.removeprefix("cuda")
        if category(event) in ("gpu_memcpy", "memcpy"):
            event["name"] = name.replace("Pageable", "Host").replace("Pinned", "Host")


def tail_of_kernels_lost(trace: Trace) -> None:
    """CUPTI's buffers were full: the last fifth of the device rows is missing."""
    rows = sorted((event for event in _whole(trace) if category(event) in _DEVICE), key=_start)
    lost = {id(event) for event in rows[len(rows) * 4 // 5 :]}
    _keep(trace, lambda event: id(event) not in lost)


PERTURBATIONS: dict[str, Perturbation] = {
    change.__name__: change
    for change in (
        without_steps,
        without_annotations,
        without_stacks,
        without_copies,
        without_calls,
        without_operators,
        last_half_of_steps,
        half_as_fast,
        twice_as_fast,
        unknown_kernels,
        only_links,
        no_arguments,
        without_shapes,
        without_external_ids,
        without_header,
        only_events,
        device_clock_behind,
        device_clock_ahead,
        whole_microseconds,
        another_clock,
        shuffled,
        categories_of_torch_1_8,
        written_by_rocm,
        tail_of_kernels_lost,
    )
}


def _whole(trace: Trace) -> Iterator[Event]:
    return (event for event in trace["traceEvents"] if event.get("ph") == "X")


def _keep(trace: Trace, test: Callable[[Event], bool]) -> None:
    trace["traceEvents"] = [event for event in trace["traceEvents"] if test(event)]


def _args(event: Event) -> dict[str, Any]:
    args = event.get("args")
    return args if isinstance(args, dict) else {}


def _start(event: Event) -> float:
    return float(event["ts"])


def _on_host(event: Event) -> bool:
    return category(event) != "gpu_user_annotation"


def _scale(trace: Trace, factor: float) -> None:
    first = min((_start(event) for event in _whole(trace)), default=0.0)
    for event in trace["traceEvents"]:
        if isinstance(event.get("ts"), int | float):
            event["ts"] = first + (event["ts"] - first) * factor
        if isinstance(event.get("dur"), int | float):
            event["dur"] *= factor


def _shift_device(trace: Trace, us: float) -> None:
    for event in _whole(trace):
        if category(event) in _DEVICE:
            event["ts"] = _start(event) + us
