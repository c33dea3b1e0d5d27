"""Measures of the driver's memory calls: who makes them, and whether memory goes back and is asked for again."""

from collections.abc import Callable

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.measures.trace.window import in_host_steps, with_example
from tb_bottleneck.trace.runtime_calls import Calls, Role
from tb_bottleneck.trace.table import Bools

_CPU_RUN = Missing("the work ran on the CPU: there are no runtime calls")
Wanted = Callable[[Bools, Bools, Bools], Bools]
_GIVES_BACK = ("Free", "Unmap", "Release", "Unregister")


def driver_allocations(recording: Recording) -> Measure | Missing:
    """Calls per step that ask the driver for device memory."""
    return _per_step(recording, lambda frees, host, inside: ~frees & ~host)


def cache_frees(recording: Recording) -> Measure | Missing:
    """Calls per step outside of any operator that give device memory back, as torch.cuda.empty_cache() does."""
    return _per_step(recording, lambda frees, host, inside: frees & ~host & ~inside)


def frees_under_pressure(recording: Recording) -> Measure | Missing:
    """Calls per step inside operators that give device memory back: the allocator's last resort when memory is full."""
    return _per_step(recording, lambda frees, host, inside: frees & ~host & inside)


def pinned_allocations(recording: Recording) -> Measure | Missing:
    """Calls per step that ask for pinned host memory, or give it back."""
    return _per_step(recording, lambda frees, host, inside: host)


def _per_step(recording: Recording, wanted: Wanted) -> Measure | Missing:
    if not recording.on_device:
        return _CPU_RUN
    calls, inside = _calls(recording)
    names = recording.trace.names
    distinct, which = np.unique(calls.name, return_inverse=True)
    frees = np.array([any(word in names[name] for word in _GIVES_BACK) for name in distinct.tolist()], np.bool_)
    host = np.array(["Host" in names[name] for name in distinct.tolist()], np.bool_)
    chosen = calls.take(wanted(frees[which], host[which], inside) if len(calls) else inside)
    return with_example(len(chosen) / len(recording.steps), "count", "step", chosen.start, chosen.end)


def _calls(recording: Recording) -> tuple[Calls, Bools]:
    """The memory calls of the window on the threads that launch, and for each whether an operator makes it."""
    trace = recording.trace
    called, _ = trace.calling_operators
    mine = (trace.calls.role == Role.ALLOCATE) & in_host_steps(recording, trace.calls.start)
    mine &= np.isin(trace.calls.thread, recording.host.launching_threads)
    return trace.calls.take(mine), called[mine]
