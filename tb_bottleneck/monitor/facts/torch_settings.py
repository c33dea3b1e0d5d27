"""Facts about torch: its configuration, and what torch.compile compiled."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from tb_bottleneck.monitor.accelerator import own_gpu
from tb_bottleneck.monitor.capture.call_lines import Programs
from tb_bottleneck.monitor.facts.process import collect_facts
from tb_bottleneck.monitor.guard import Guard
from tb_bottleneck.monitor.torch_internals import compilation_callbacks, compilations, graph_breaks
from tb_bottleneck.monitor.workers.stack_sampler import below_import_path
from tb_bottleneck.schema.compile_entries import CompileEntries

CALLS = "compile_calls"
FRAME_COMPILED = "DYNAMO"
"""The trigger that torch passes to callbacks if a call of the program is compiled. Other triggers are for parts that
torch compiles later."""


class CompileLog:
    """Accumulates torch's records of compilations, of which torch keeps only the last 64.

    The records show what torch.compile compiled, which guard (a condition of compiled code) failed before, where graphs
    end, and what stays uncompiled. torch keeps the records in memory for its own reports (torch/_dynamo/utils.py).
    After the first step with a compilation, torch also calls `_compiles` before each further compilation. The stack of
    this call shows the line of the program that makes torch compile.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._entries = CompileEntries(below_import_path)
        self._programs = Programs()
        self._last: object = None
        self._closed = False

    def has_changed(self) -> bool:
        """Returns True if something was compiled since the last call of `facts`. Takes microseconds."""
        records = compilations()
        return bool(records) and records[-1] is not self._last

    def facts(self) -> dict[str, object]:
        """Returns {"compile_log": ...} as schema/compile_entries.py describes it; {} if nothing was compiled."""
        records = compilations()
        self._last = records[-1] if records else None
        for record in records:
            self._entries.add(record)
        self._entries.forget_breaks()  # torch keeps all graph breaks, so all are added again
        for reason in graph_breaks():
            stack = getattr(reason, "user_stack", None) or ()
            place = (str(stack[-1].filename), int(stack[-1].lineno or 0), str(stack[-1].name)) if stack else ("", 0, "")
            self._entries.add_break(*place, getattr(reason, "reason", None))
        fact = self._entries.fact()
        return {"compile_log": fact} if fact else {}

    def watch(self) -> None:
        """Makes torch call `_compiles` before each compilation from now on. Called in every step, and takes less than a
        microsecond."""
        callbacks = compilation_callbacks()
        if callbacks is not None and not self._closed and self._compiles not in callbacks:
            callbacks.append(self._compiles)

    def close(self) -> None:
        """Stops torch from calling `_compiles`."""
        self._closed = True
        callbacks = compilation_callbacks()
        if callbacks is not None and self._compiles in callbacks:
            callbacks.remove(self._compiles)

    def _compiles(self, started: Any = None) -> None:
        self._guard.call(CALLS, self._add_call, started, sys._getframe(1))

    def _add_call(self, started: Any, frame: FrameType | None) -> None:
        """Adds the line of the program that makes torch compile: the innermost line of the user's program in the stack
        of `frame`. `started` is torch's object about the compilation that begins."""
        number, trigger = getattr(started, "compile_id", None), getattr(started, "callback_trigger", None)
        if not number or getattr(trigger, "name", FRAME_COMPILED) != FRAME_COMPILED:
            return
        while frame is not None and not self._programs[below_import_path(frame.f_code.co_filename)]:
            frame = frame.f_back
        if frame is not None:
            self._entries.add_call(str(number), frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def collect() -> dict[str, object]:
    """Returns the facts about torch's configuration by name, as JSON values. Unavailable facts are left out. Never
    raises and never imports torch.

    The facts cover precision, algorithms, device and processes, and are read without initialising a device."""
    torch = sys.modules.get("torch")
    return {} if torch is None else collect_facts(_FACTS, torch)


def _device(torch: Any, name: str) -> Any:
    if not torch.cuda.is_initialized():
        return None
    return getattr(torch.cuda.get_device_properties(own_gpu(torch)), name)


def _distributed(torch: Any, name: str) -> Any:
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return None
    return getattr(distributed, name)()


_FACTS: dict[str, Callable[[Any], object]] = {
    "cuda": lambda torch: torch.version.cuda,
    "rocm": lambda torch: torch.version.hip,
    "cudnn": lambda torch: torch.backends.cudnn.version() if torch.cuda.is_initialized() else None,
    "cudnn_benchmark": lambda torch: bool(torch.backends.cudnn.benchmark),
    "cudnn_deterministic": lambda torch: bool(torch.backends.cudnn.deterministic),
    "deterministic_algorithms": lambda torch: bool(torch.are_deterministic_algorithms_enabled()),
    "matmul_precision": lambda torch: str(torch.get_float32_matmul_precision()),
    "default_dtype": lambda torch: str(torch.get_default_dtype()).removeprefix("torch."),
    "device_uuid": lambda torch: None if (uuid := _device(torch, "uuid")) is None else str(uuid),
    "device_capability": lambda torch: (
        None if (major := _device(torch, "major")) is None else f"{major}.{_device(torch, 'minor')}"
    ),
    "torch_architectures": lambda torch: torch.cuda.get_arch_list() if torch.cuda.is_initialized() else None,
    "device_memory": lambda torch: _device(torch, "total_memory"),
    "device_multiprocessors": lambda torch: _device(torch, "multi_processor_count"),
    # torch reports the clocks since 2.7, in kHz. The memory clock is the clock of a bus with two transfers per cycle.
    "sm_clock_hz": lambda torch: None if (rate := _device(torch, "clock_rate")) is None else 1000 * rate,
    "memory_clock_hz": lambda torch: None if (rate := _device(torch, "memory_clock_rate")) is None else 1000 * rate,
    "memory_bus_bits": lambda torch: _device(torch, "memory_bus_width"),
    "device_count": lambda torch: torch.cuda.device_count() if torch.cuda.is_initialized() else None,
    "anomaly_detection": lambda torch: bool(torch.is_anomaly_enabled()),
    "world_size": lambda torch: _distributed(torch, "get_world_size"),
    "rank": lambda torch: _distributed(torch, "get_rank"),
    "backend": lambda torch: _distributed(torch, "get_backend"),
}
