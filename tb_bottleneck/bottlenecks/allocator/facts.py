"""Measures of the driver's memory calls, and of how much larger the batch could be before the memory is full.

The measures distinguish calls that allocate from calls that free memory, device memory from pinned host memory, and
calls inside operators from calls outside.
"""

from collections.abc import Callable
from math import log2

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.measures.trace.window_rows import in_host_steps, with_example
from tb_bottleneck.memory.forecast.batch_scaling import samples_of
from tb_bottleneck.memory.forecast.forecasts import MAX_GROWTH, RESERVE, Forecaster
from tb_bottleneck.memory.trace_memory import trace_memory
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.process_facts import DEVICE_MEMORY, positive
from tb_bottleneck.trace.runtime_calls import Calls, Role
from tb_bottleneck.trace.table import Bools

_CPU_RUN = Missing("the work ran on the CPU: there are no runtime calls")
Selection = Callable[[Bools, Bools, Bools], Bools]
"""A function that selects the calls to count. Its arguments are three masks with one element per call: True if the call
frees memory, if the call concerns host memory, and if an operator makes the call. The function returns the mask of the
calls to count."""

_FREES = ("Free", "Unmap", "Release", "Unregister")


def driver_allocations(recording: Recording) -> Measure | Missing:
    """Calls per step that allocate device memory from the driver."""
    return _per_step(recording, lambda frees, host, inside: ~frees & ~host)


def cache_frees(recording: Recording) -> Measure | Missing:
    """Calls per step that free device memory outside of any operator, as torch.cuda.empty_cache() does."""
    return _per_step(recording, lambda frees, host, inside: frees & ~host & ~inside)


def frees_under_pressure(recording: Recording) -> Measure | Missing:
    """Calls per step that free device memory inside operators. The allocator frees its cache inside an operator only if
    the device memory is full."""
    return _per_step(recording, lambda frees, host, inside: frees & ~host & inside)


def pinned_allocations(recording: Recording) -> Measure | Missing:
    """Calls per step that allocate or free pinned host memory."""
    return _per_step(recording, lambda frees, host, inside: host)


def _per_step(recording: Recording, select: Selection) -> Measure | Missing:
    """Returns the number per step of the memory calls that `select` chooses."""
    if not recording.on_device:
        return _CPU_RUN
    calls, inside = _calls(recording)
    names = recording.trace.names
    frees = name_matches(names, calls.name, lambda name: any(word in name for word in _FREES))
    host = name_matches(names, calls.name, lambda name: "Host" in name)
    counted = calls.take(select(frees, host, inside))
    return with_example(len(counted) / len(recording.steps), "count", "step", counted.start, counted.end)


def _calls(recording: Recording) -> tuple[Calls, Bools]:
    """Returns the calls that allocate or free device memory, such as cudaMalloc, of the window and of the threads that
    launch kernels; and a mask of these calls: True if an operator makes the call."""
    trace = recording.trace
    called, _ = trace.calling_operators
    mine = (trace.calls.role == Role.ALLOCATE) & in_host_steps(recording, trace.calls.start)
    mine &= np.isin(trace.calls.thread, recording.host.launching_threads)
    return trace.calls.take(mine), called[mine]


def fitting_batch(recording: Recording) -> Measure | Missing:
    """Largest power of two by which the batch can be multiplied such that the predicted peak still fits into the
    device's memory (count)."""
    memory = trace_memory(recording.trace)
    if isinstance(memory, Missing):
        return _fitting_by_counters(recording)
    samples = samples_of(memory)
    if samples is None or memory.account.capacity is None:
        return Missing("the samples of a step or the size of the device's memory are not recorded")
    return Measure(float(Forecaster(memory, samples).largest_factor(memory.account.capacity)), "count")


def _fitting_by_counters(recording: Recording) -> Measure | Missing:
    """Returns `fitting_batch` from what the monitor measured over the run, as if all memory of torch grew with the
    batch."""
    trace = recording.trace
    facts, memory = trace.header.device(trace.device_index), trace.header.context.get(DEVICE_MEMORY)
    used, torch = map(positive, memory) if isinstance(memory, list) and len(memory) == 2 else (None, None)
    if facts is None or facts.memory is None or used is None or torch is None:
        return Missing("the memory that the run uses was not recorded")
    grows = (facts.memory * (1 - RESERVE) - max(used - torch, 0.0)) / torch
    return Measure(float(2 ** int(log2(min(max(grows, 1.0), MAX_GROWTH)))), "count", source="telemetry")
