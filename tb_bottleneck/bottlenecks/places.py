"""Locates causes in the program: by times at which host threads run the program's code, or by the places in the code at
which workers make batches."""

from collections import Counter
from collections.abc import Callable

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import Spans, intersect, subtract, union
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.bottlenecks.compute.kernel_efficiency import misaligned_kernels, plain_fp32_kernels
from tb_bottleneck.bottlenecks.compute.wide_types import double_kernels
from tb_bottleneck.bottlenecks.input.batch_work import (
    conversion_spans,
    handover_spans,
    iterator_spans,
    sampler_spans,
)
from tb_bottleneck.bottlenecks.input.stages import LoaderWork
from tb_bottleneck.bottlenecks.input.trace_stages import loader_work
from tb_bottleneck.bottlenecks.interruption.facts import interruptions_of
from tb_bottleneck.bottlenecks.launch.anomaly_detection import anomaly_detection
from tb_bottleneck.bottlenecks.launch.device_checks import device_checks
from tb_bottleneck.bottlenecks.launch.operator_loops import repeated_calls
from tb_bottleneck.bottlenecks.launch.recurrent_cells import recurrent_cells
from tb_bottleneck.bottlenecks.launch.scattered_updates import scattered_updates
from tb_bottleneck.bottlenecks.memory.attention import attention_time
from tb_bottleneck.bottlenecks.memory.fusion import parameter_passes, pointwise_ops
from tb_bottleneck.bottlenecks.sync.facts import EXPLICIT, READ, SHAPE, UPLOAD, costly_waits_of
from tb_bottleneck.measures.trace.uneven_steps import calls_of_uneven_steps
from tb_bottleneck.measures.user_code.frames import is_user_function
from tb_bottleneck.measures.user_code.places import MAX_PLACES, HostTimes, Place, places_of
from tb_bottleneck.trace.device_ops import DeviceOps
from tb_bottleneck.trace.frames import frame_parts
from tb_bottleneck.trace.kernel_names import cut
from tb_bottleneck.trace.nesting import innermost
from tb_bottleneck.trace.table import Ints

CAUSES = frozenset({"too_few_workers", "too_few_cores", "cores_limit_workers", "slow_storage", "few_fetches"})
"""Causes of the regime `input` in which the training waits for the work of its workers."""


def worker_places(work: LoaderWork | Missing, cause: str) -> tuple[Place, ...]:
    """Returns the places in the program that take the most time of making batches, the costliest first. Returns ()
    unless the monitor sampled the workers and `cause` is one of CAUSES.

    The `share` of a place is its share of the time of all stages.
    """
    if isinstance(work, Missing) or work.basis != "samples" or cause not in CAUSES:
        return ()
    times: Counter[str] = Counter()
    for stage in work.stages:
        if stage.place:
            times[stage.place] += stage.ns  # type: ignore[assignment]
    places = []
    for frame, ns in times.most_common(MAX_PLACES):
        file, line, function = frame_parts(frame)
        places.append(Place(ns / max(work.ns, 1.0), cut(file), line, cut(function)))
    return tuple(places)


# The number of evenly spread times at which frames are looked up: a line with 1 % of the time is found 20 times.
SAMPLES = 2_000


def _interruptions(kind: str) -> Callable[[Recording], Spans]:
    """Returns a function that returns the time of the interruptions of `kind`."""
    return lambda recording: interruptions_of(recording).of(kind).spans()


def _outside_operators(recording: Recording) -> Spans:
    """Returns the spans of the regime `host` in which no operator computes on the host."""
    operators = recording.host.host_operators.spans(makes_batch=False)
    return subtract(recording.owned_spans.of(Regime.HOST), operators)


def _beside_loops(recording: Recording) -> Spans:
    """Returns the spans of the regime `launch` outside of loops over tensors, which are a cause of their own."""
    return subtract(recording.owned_spans.of(Regime.LAUNCH), scattered_updates(recording))


ROWS_OF_CAUSE: dict[str, Callable[[Recording], Spans]] = {
    "checkpointing": _interruptions("checkpoint"),
    "evaluation": _interruptions("evaluation"),
    "logging": _interruptions("logging"),
    "garbage_collection": _interruptions("collection"),
    "host_python": _outside_operators,
    "python_tracer": _outside_operators,
    "host_operators": lambda recording: recording.host.host_operators.spans(makes_batch=False),
    "optimizer_for_loop": lambda recording: recording.optimizer_steps,
    "optimizer_passes": parameter_passes,
    "small_kernels": _beside_loops,
    "small_operators": _beside_loops,
    "unbatched_calls": lambda recording: repeated_calls(recording).others,
    "iterator_per_batch": iterator_spans,
    "slow_sampler": sampler_spans,
    "tensor_handover": handover_spans,
    "tensors_from_lists": conversion_spans,
    "anomaly_detection": anomaly_detection,
    "device_checks": device_checks,
    "scattered_updates": scattered_updates,
    "recurrent_cells": recurrent_cells,
    "unfused_attention": attention_time,
}
"""By cause: a function that returns the time in which the events of the cause run on the host. For other causes, the
whole time of the regime counts."""

KERNELS_OF_CAUSE: dict[str, Callable[[Recording], DeviceOps]] = {
    "double_precision": lambda recording: recording.trace.device_ops.take(double_kernels(recording)),
    "fp32_matmul": plain_fp32_kernels,
    "fp32_without_tf32": plain_fp32_kernels,
    "misaligned_shapes": misaligned_kernels,
    "unfused_pointwise": pointwise_ops,
}
"""By cause: a function that returns the kernels of the cause. Some of these kernels belong to another regime than the
cause."""

WAITS_OF_CAUSE = {
    "scalar_reads": READ,
    "metric_reads": READ,
    "blocking_uploads": UPLOAD,
    "data_dependent_shapes": SHAPE,
    "explicit_waits": EXPLICIT,
}
"""By cause of the regime `sync`: the kind of wait (see CostlyWait). For other causes, all waits count."""


def cause_places(recording: Recording, regime: Regime, cause: str) -> tuple[Place, ...]:
    """Returns the places in the user's program that cause the time of `cause`, a cause of `regime`, costliest first.

    If the loader's workers are the cause, the places are in the code that the workers run, not where the training waits
    for them.
    """
    in_workers = worker_places(loader_work(recording), cause) if regime is Regime.INPUT else ()
    return in_workers or places_of(recording, cause_times(recording, regime, cause))


def cause_times(recording: Recording, regime: Regime, cause: str) -> HostTimes:
    """Returns rows (host thread, time, cost) that show which code causes the time of `cause`, a cause of `regime`.

    Rows are usually samples, spread evenly over the time that the regime owns or, for a cause in KERNELS_OF_CAUSE, over
    the time of the kernels of the cause. If the device works at a sampled time, the sample gets the start of the call
    that launched the work. If the device is idle, the sample keeps its time, on the launching thread. For a cause in
    ROWS_OF_CAUSE, only samples within the events of the cause are kept.

    Two kinds of causes have no samples. Regime `sync`: one row per wait, whose cost is the idle time of the device
    during and after the wait. Cause `uneven_steps`: one row per call that runs only in long steps, whose cost is its
    duration.
    """
    if regime is Regime.SYNC:
        return wait_times(recording, WAITS_OF_CAUSE.get(cause))
    if cause == "uneven_steps":
        events, calls = recording.trace.events, calls_of_uneven_steps(recording, is_user_function)
        return HostTimes(events.thread[calls], events.start[calls], events.duration[calls].astype(np.float64))
    window = Spans(np.array([recording.steps.begin]), np.array([recording.steps.end]))
    if cause in KERNELS_OF_CAUSE and recording.on_device:
        kernels = KERNELS_OF_CAUSE[cause](recording)
        times = _times_in(intersect(union(kernels.start, kernels.end), window))
        return _launches(recording, kernels, innermost(kernels.start, kernels.end, times)[1])
    moments = _on_host(recording, _times_in(recording.owned_spans.of(regime) if regime in REGIMES else window))
    rows_of = ROWS_OF_CAUSE.get(cause)
    return moments if rows_of is None else moments.take(rows_of(recording).contains(moments.time))


def wait_times(recording: Recording, kind: str | None = None) -> HostTimes:
    """Returns the starts of the waits of `kind` that leave the device idle, with this idle time (ns) as their cost.
    None stands for all kinds."""
    waits = [wait for wait in costly_waits_of(recording) if kind in (None, wait.kind)] if recording.on_device else []
    return HostTimes(
        np.array([wait.thread for wait in waits], np.int64),
        np.array([wait.begin for wait in waits], np.int64),
        np.array([wait.cost for wait in waits], np.float64),
    )


def _times_in(spans: Spans) -> Ints:
    """Returns points in time (ns) that are spread evenly over `spans`: as many as SAMPLES, none if `spans` is empty."""
    if not spans.total():
        return np.empty(0, np.int64)
    offsets = (np.arange(SAMPLES) + 0.5) / SAMPLES * spans.total()
    before = np.concatenate(([0], np.cumsum(spans.ends - spans.starts)))
    span = np.minimum(np.searchsorted(before, offsets, side="right") - 1, len(spans) - 1)
    return np.asarray(spans.starts[span] + offsets - before[span], np.int64)


def _launches(recording: Recording, ops: DeviceOps, which: Ints) -> HostTimes:
    """Returns the threads and times at which the elements `which` of `ops` were launched, each with the cost 1. The
    thread is -1 if the launching call is not known."""
    calls, launched = recording.trace.calls, ops.launched[which]
    thread = np.where(launched, calls.thread[ops.call[which]], -1) if len(calls) else np.full(len(which), -1)
    return HostTimes(thread, ops.issued(calls)[which], np.ones(len(which)))


def _on_host(recording: Recording, times: Ints) -> HostTimes:
    """Returns the threads and times on the host that cause the device's work or idle time at `times` (ns; see
    `cause_times`), each with the cost 1."""
    cost = np.ones(len(times))
    if not recording.on_device:
        main = recording.host.main_thread
        return HostTimes(np.full(len(times), -1 if main is None else main), times, cost)
    ops, calls, gaps = recording.trace.device_ops, recording.trace.calls, recording.gaps
    works, op = innermost(ops.start, ops.end, times)
    gap = np.searchsorted(gaps.begin, times, side="right") - 1
    in_gap = (gap >= 0) & ~works
    thread = np.where(in_gap, gaps.thread[gap] if len(gaps.thread) else -1, -1)
    launched = works & ops.launched[op]
    if len(calls):
        thread = np.where(launched, calls.thread[ops.call[op]], thread)
        times = np.where(launched, calls.start[ops.call[op]], times)
    return HostTimes(thread, times, cost)
