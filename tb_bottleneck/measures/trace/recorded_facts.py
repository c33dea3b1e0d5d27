"""Measures of what was recorded: facts of the process, the kind of work, and the profiler's overhead per step.

The facts are those that the training process added to its trace; their values are untrusted. The kind of work is steps
or unstructured work, training or inference. The overhead is known if the step time without the profiler was recorded
with the trace.
"""

import re

import numpy as np

from tb_bottleneck.attribution.profiler_time.logged_steps import logged_unprofiled
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.attribution.training_detection import has_backward, has_training
from tb_bottleneck.base.measure import Measure, Missing, text_measure
from tb_bottleneck.trace.kernel_names import cut
from tb_bottleneck.trace.kinds import Kind

_WORD = re.compile(r"[A-Za-z0-9_.+-]{1,40}")
_NOT_RECORDED = Missing("the training process did not add this fact; tb_bottleneck.monitor.facts.process adds it")


def on_windows(recording: Recording) -> Measure | Missing:
    """The text `Windows` if the program ran on Windows (spawned workers, no Triton in torch), otherwise missing."""
    system = _word(recording, "os")
    return system if isinstance(system, Measure) and system.text == "Windows" else Missing("not known to be Windows")


def worker_start_method(recording: Recording) -> Measure | Missing:
    """How the loader's worker processes start: fork, forkserver or spawn."""
    return _word(recording, "worker_start")


def workers_persist(recording: Recording) -> Measure | Missing:
    """The loader's persistent_workers, as text."""
    return _switch(recording, "persistent_workers")


def loader_pins(recording: Recording) -> Measure | Missing:
    """The loader's pin_memory, as text."""
    return _switch(recording, "pin_memory")


def product_library(recording: Recording) -> Measure | Missing:
    """The BLAS library for matrix multiplications on the CPU that torch was built with, as text."""
    return _word(recording, "torch_blas")


def _word(recording: Recording, name: str) -> Measure | Missing:
    value = recording.trace.header.context.get(name)
    return text_measure(value) if isinstance(value, str) and _WORD.fullmatch(value) else _NOT_RECORDED


def _switch(recording: Recording, name: str) -> Measure | Missing:
    value = recording.trace.header.context.get(name)
    return text_measure(str(value)) if isinstance(value, bool) else _NOT_RECORDED


# With this share of the device's time, the rest does not matter.
ONE_OPERATOR = 0.95


def training_recorded(recording: Recording) -> Measure | Missing:
    """1 if a backward pass or an optimizer was recorded; missing otherwise, as for inference."""
    return Measure(1.0, "count") if has_training(recording.trace) else Missing("no backward pass was recorded")


def backward_recorded(recording: Recording) -> Measure | Missing:
    """1 if a backward pass was recorded; missing otherwise."""
    return Measure(1.0, "count") if has_backward(recording.trace) else Missing("no backward pass was recorded")


def steps_found(recording: Recording) -> Measure | Missing:
    """The number of steps if steps are marked or were found from repetition; otherwise missing."""
    if recording.steps.basis == "whole":
        return Missing("the recording has no steps")
    return Measure(float(len(recording.steps)), "count", "window", len(recording.steps))


def only_operator(recording: Recording) -> Measure | Missing:
    """The name of the only operator, as text, if its calls with equal shapes make up almost all work on the device."""
    trace, ops = recording.trace, recording.trace.device_ops
    called, operator = trace.calling_operators
    own = np.flatnonzero(ops.launched & recording.in_window(ops.start))
    own = own[called[ops.call[own]]] if len(own) else own
    several = Missing("the recording shows several operators")
    if not len(own) or has_training(trace):
        return several
    rows, length = operator[ops.call[own]], (ops.end - ops.start)[own].astype(np.float64)
    kinds, group = np.unique(
        np.stack((trace.events.name[rows], trace.events.signature[rows])), axis=1, return_inverse=True
    )
    spent = np.bincount(group.ravel(), length)
    name, signature = kinds[:, spent.argmax()].tolist()
    alone = spent.max() >= ONE_OPERATOR * float((ops.end - ops.start)[recording.in_window(ops.start)].sum())
    # A compiled region is a whole model, and without shapes layers of different sizes look alike.
    return (
        text_measure(cut(trace.names[name]), len(own)) if alone and signature and "::" in trace.names[name] else several
    )


# An unprofiled step time outside these factors of the recorded one is of other steps: the costliest options were
# measured to double a step's time, and a step of many small operators may be slowed more.
LONGEST_UNPROFILED, SHORTEST_UNPROFILED = 1.25, 0.2
# The highest overhead per recorded row that was measured: 0.3 to 3.2 us for each operator or frame in steps of up to
# 9,000 (torch 2.13, the recordings of demo/). For a call it is six times the usual overhead, as for the costliest
# operator. Time beyond that is not overhead: two runs differ, and so do the steps of one run.
MAX_OVERHEAD_NS = {Kind.CPU_OP: 3_300, Kind.PYTHON: 3_300, Kind.CALL: 12_000}
# The profiler's usual overhead per recorded event, torch 2.13: 0.23 to 0.55 us per operator depending on the options,
# 0.28 us per Python frame (measured on an AMD EPYC machine); about 2 us per runtime call (recalled from CUPTI's
# documentation, not measured here).
NS_PER_OPERATOR, NS_PER_FRAME, NS_PER_CALL = 400, 280, 2_000
# A choice, without an outside source: of 38 recordings of the demo, four differ by 1.55 to 10.9 beyond the overhead,
# the others by less than 1.3. All come from a machine with other programs: nothing proves that the four were disturbed.
ATYPICAL_FROM = 1.5
_UNKNOWN = Missing("the step time without the profiler was not recorded; the monitor adds it to the trace")


def atypical_ratio(recording: Recording) -> float | None:
    """Returns recorded step time / unprofiled step time if the profiler cannot explain the difference, else None."""
    logged = logged_unprofiled(recording)
    if logged is None:
        return None
    step = logged.average(recording.steps.durations)
    too_slow = step - _max_overhead(recording) > ATYPICAL_FROM * logged.step
    return step / logged.step if too_slow or logged.step > ATYPICAL_FROM * step else None


def profiler_overhead(recording: Recording) -> Measure | Missing:
    """Share of the step that is profiler overhead: 1 - step time without the profiler / step time with it.

    The share is limited to the overhead that recording the rows of a step can cause.
    """
    without, logged = unprofiled_step(recording), logged_unprofiled(recording)
    if logged is None:
        return _UNKNOWN
    if isinstance(without, Missing):
        return without
    step = logged.average(recording.steps.durations)
    share = min(1 - without.value / step, _max_overhead(recording) / step)
    return Measure(max(share, 0.0), "share", "step", len(recording.steps), source="both")


def _max_overhead(recording: Recording) -> float:
    """Returns the highest overhead that recording a step can have caused, in ns."""
    events = recording.trace.events
    inside = recording.in_window(events.start)
    counts = {kind: np.count_nonzero(inside & (events.kind == kind)) for kind in MAX_OVERHEAD_NS}
    return sum(ns * counts[kind] for kind, ns in MAX_OVERHEAD_NS.items()) / len(recording.steps)


def unprofiled_step(recording: Recording) -> Measure | Missing:
    """The step time without the profiler (ns), as the training process measured it.

    The median; of uneven steps, the mean.
    """
    logged = logged_unprofiled(recording)
    if logged is None:
        return _UNKNOWN
    step = logged.average(recording.steps.durations)
    if not SHORTEST_UNPROFILED * step <= logged.step <= LONGEST_UNPROFILED * step:
        return Missing("the recorded step time without the profiler is implausible for these steps")
    return Measure(logged.step, "ns", "step", source="context")
