"""Measures from the facts that the training process added to its trace, such as the settings of the loader. The facts
are untrusted, so their types and ranges are checked."""

import re

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Measure, Missing, text_measure

_WORD = re.compile(r"[A-Za-z0-9_.+-]{1,40}")
_NOT_RECORDED = Missing("the training process did not add this fact; tb_bottleneck.monitor.facts.process adds it")


def on_windows(recording: Recording) -> Measure | Missing:
    """The text `Windows` if the program ran on Windows, where workers are spawned and torch has no Triton; otherwise
    missing."""
    system = _word(recording, "os")
    return system if isinstance(system, Measure) and system.text == "Windows" else Missing("not known to be Windows")


def python_tracer(recording: Recording) -> Measure | Missing:
    """The text `on` if a debugger, coverage tool or profiler of Python watched the training thread."""
    aids = recording.trace.header.context.get("debugging")
    return text_measure("on") if isinstance(aids, list) and "tracer" in aids else Missing("no tracer was on")


def worker_start_method(recording: Recording) -> Measure | Missing:
    """How the loader's worker processes start, as text: fork, forkserver or spawn."""
    return _word(recording, "worker_start")


def workers_persist(recording: Recording) -> Measure | Missing:
    """The loader's persistent_workers, as text."""
    return _switch(recording, "persistent_workers")


def loader_pins(recording: Recording) -> Measure | Missing:
    """The loader's pin_memory, as text; missing for a run on the CPU, which copies no batch to a device."""
    return _switch(recording, "pin_memory") if recording.on_device else _NOT_RECORDED


def product_library(recording: Recording) -> Measure | Missing:
    """The BLAS library for matrix multiplications on the CPU that torch was built with, as text."""
    return _word(recording, "torch_blas")


def count_of(recording: Recording, name: str) -> int | None:
    """Returns the fact `name` if its value is a whole number from 1 to 1e9, otherwise None."""
    value = recording.trace.header.context.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 1e9 else None


def _word(recording: Recording, name: str) -> Measure | Missing:
    """Returns the fact `name` as a measure if its value is a short text without spaces."""
    value = recording.trace.header.context.get(name)
    return text_measure(value) if isinstance(value, str) and _WORD.fullmatch(value) else _NOT_RECORDED


def _switch(recording: Recording, name: str) -> Measure | Missing:
    """Returns the fact `name` as a measure with the text True or False if its value is a bool."""
    value = recording.trace.header.context.get(name)
    return text_measure(str(value)) if isinstance(value, bool) else _NOT_RECORDED
