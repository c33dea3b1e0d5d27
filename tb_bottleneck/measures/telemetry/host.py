"""Measures of the host, and upper bounds of what a CPU run can save without one of its costs.

The measures of the host are the phases of a step (forward, backward, optimizer), waits, allocations, long steps,
processes and cores.

Each upper bound is a measure `most_without_...` for one cost, for example a loader, a writer or an evaluation. The cost
also takes cores, caches and the interpreter's lock from the other work of a step, so without the cost, the other work
becomes shorter too. The shortest time of the other work is estimated as the 10th percentile of its time over all steps.
If the cost slows all steps equally, the estimate is multiplied by a measured factor (`rest_remains`). It is also
reduced by RUN_TO_RUN_NOISE, because another run can be faster. The upper bound is 1 - this shortest time / the mean
step (share of the judged time). The measures are missing if the run has a device, because the device's work takes no
cores.
"""

from math import exp

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.attribution.telemetry.window_signals import PHASES
from tb_bottleneck.base.arrays import percentile
from tb_bottleneck.base.deviations import RUN_TO_RUN_NOISE
from tb_bottleneck.base.measure import Measure, Missing, text_measure
from tb_bottleneck.measures.unaffected_steps import BESIDE_WRITER, FAST
from tb_bottleneck.trace.process_facts import parameters_in_fp32

MOSTLY = 0.5
STEADY = 0.2
"""Distances between long steps form a period if the median of their deviations from their median is at most this share
of the median."""


def step_time(recording: TelemetryRecording) -> Measure | Missing:
    """Mean time of a step (ns)."""
    return recording.per_step("wall", "ns")


def timed_phase_count(recording: TelemetryRecording) -> Measure | Missing:
    """Number of phases of the step (count). Missing unless all phases were timed."""
    for name in PHASES:
        if isinstance(recording.per_step(name, "ns"), Missing):
            return Missing(recording.why_missing(name))
    return Measure(float(len(PHASES)), "count", "step", source=EVIDENCE_SOURCE)


def timed_phases(recording: TelemetryRecording) -> Measure | Missing:
    """The phases of the step that were timed, and those that were not, as text."""
    timed = [name for name in PHASES if isinstance(recording.per_step(name, "ns"), Measure)]
    if not timed:
        return Missing("the phases of the step were not recorded")
    others = [name for name in PHASES if name not in timed]
    return text_measure(", ".join(timed) + (f"; not timed: {', '.join(others)}" if others else ""))


def phase_time(recording: TelemetryRecording) -> Measure | Missing:
    """Host time per step in those of the phases forward, backward and optimizer that were timed (ns)."""
    parts = [recording.per_step(name, "ns") for name in PHASES]
    timed = [part for part in parts if isinstance(part, Measure)]
    if not timed:
        return Missing("the phases of the step were not recorded")
    return Measure(sum(part.value for part in timed), "ns", "step", timed[0].count, EVIDENCE_SOURCE)


def host_waits(recording: TelemetryRecording) -> Measure | Missing:
    """Number of calls per step in which the host waits for the device (count)."""
    return recording.per_step("syncs", "count")


def idle_inside_phases(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which the device is idle inside the phases of a step (share of the judged time). Telemetry does not show
    whether the host waits or launches in this time."""
    accounts = recording.accounts
    inside = np.where(np.isnan(accounts.idle), np.nan, accounts.ambiguous)
    return recording.mean(inside, "share", recording.idle_missing)


def time_outside_phases(recording: TelemetryRecording) -> Measure | Missing:
    """Host time per step outside loader, copies, forward, backward and optimizer (ns)."""
    phase_count = timed_phase_count(recording)
    if isinstance(phase_count, Missing):
        return phase_count
    wall, phases = step_time(recording), phase_time(recording)
    if isinstance(wall, Missing) or isinstance(phases, Missing):
        return wall if isinstance(wall, Missing) else phases
    others = [recording.per_step(name, "ns") for name in ("loader_wait", "transfer")]
    inside = phases.value + sum(part.value for part in others if isinstance(part, Measure))
    return Measure(max(wall.value - inside, 0.0), "ns", "step", wall.count, EVIDENCE_SOURCE)


def blocks_allocated(recording: TelemetryRecording) -> Measure | Missing:
    """Number of blocks of memory per step that torch's allocator requests from the driver (count)."""
    return recording.per_step("device_allocations", "count")


def blocks_freed(recording: TelemetryRecording) -> Measure | Missing:
    """Number of blocks of memory per step that torch's allocator returns to the driver (count)."""
    return recording.per_step("device_frees", "count")


def allocations_retried(recording: TelemetryRecording) -> Measure | Missing:
    """Number of allocations per step that fail at first and are tried again after the allocator has emptied its cache
    (count)."""
    return recording.per_step("allocation_retries", "count")


def peak_memory_share(recording: TelemetryRecording) -> Measure | Missing:
    """Highest device memory in use (share of the device's memory)."""
    used = recording.windows.readings("memory_used", of_device=True)[1]
    total = recording.windows.readings("memory_total", of_device=True)[1]
    if not len(used) or not len(total) or total.max() <= 0:
        return Missing(recording.why_missing("memory_used"))
    return Measure(min(float(used.max() / total.max()), 1.0), "share", "", len(used), EVIDENCE_SOURCE)


def fp32_parameters(recording: TelemetryRecording) -> Measure | Missing:
    """Share of the model's parameters that are float32, if this share is more than MOSTLY; otherwise missing.

    Activations of such a model are usually float32 too.
    """
    share = parameters_in_fp32(recording.facts.get("parameters_by_dtype"))
    if share is None:
        return Missing("parameters_by_dtype is not among the facts of the run")
    if share <= MOSTLY:
        return Missing("most parameters are not in 32 bits")
    return Measure(share, "share", source=EVIDENCE_SOURCE)


def long_steps(recording: TelemetryRecording) -> Measure | Missing:
    """Number of steps that are much longer than their neighbours without doing more work (count)."""
    return Measure(float(len(recording.excess.number)), "count", "window", source=EVIDENCE_SOURCE)


def long_step_excess(recording: TelemetryRecording) -> Measure | Missing:
    """Median time by which a long step exceeds its neighbours (ns)."""
    ns = recording.excess.ns
    if not len(ns):
        return Missing("no step was much longer than its neighbours")
    return Measure(float(np.median(ns)), "ns", "call", len(ns), EVIDENCE_SOURCE)


def long_step_period(recording: TelemetryRecording) -> Measure | Missing:
    """The number of steps from one long step to the next, or the range of these numbers, as text."""
    distance = np.diff(recording.excess.number)
    if len(distance) < 2:
        return Missing("too few long steps for a period")
    usual = float(np.median(distance))
    steady = np.median(np.abs(distance - usual)) <= STEADY * usual
    text = f"every {usual:,.0f} steps" if steady else f"every {distance.min()} to {distance.max():,} steps"
    return text_measure(text, len(distance))


def torch_threads_per_core(recording: TelemetryRecording) -> Measure | Missing:
    """Intra-op threads of torch in all processes of the job on this machine / usable cores (count)."""
    threads, cores = recording.fact("torch_threads"), recording.fact("cores")
    if not threads or not cores:
        return Missing("torch_threads or cores is not among the facts of the run")
    return Measure(threads * (recording.fact("local_world_size") or 1.0) / cores, "count", source=EVIDENCE_SOURCE)


def intra_op_threads(recording: TelemetryRecording) -> Measure | Missing:
    """Torch's intra-op threads in this process (count)."""
    threads = recording.fact("torch_threads")
    if not threads:
        return Missing("torch_threads is not among the facts")
    return Measure(threads, "count", source=EVIDENCE_SOURCE)


def run_queue_per_core(recording: TelemetryRecording) -> Measure | Missing:
    """Mean number of runnable threads per usable core (count)."""
    queue = recording.of_series("run_queue", "count")
    usable = recording.of_series("cpu_usable_cores", "count")
    cores = usable.value if isinstance(usable, Measure) else recording.fact("cores")
    if isinstance(queue, Missing) or not cores:
        return queue if isinstance(queue, Missing) else Missing(recording.why_missing("cpu_usable_cores"))
    return Measure(queue.value / cores, "count", "", queue.count, EVIDENCE_SOURCE)


def core_pressure(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which at least one thread waits for a core (share of the judged time): the value `some` of Linux's
    pressure stall information (PSI)."""
    return recording.of_series("cpu_pressure", "share")


def quota_throttled(recording: TelemetryRecording) -> Measure | Missing:
    """Scheduling periods in which the CPU quota (of a cgroup) is used up (share of the periods).

    If periods were not recorded: core time for which the quota stopped threads (share of the core time of the usable
    cores).
    """
    periods = recording.of_series("quota_throttled_periods", "share")
    if isinstance(periods, Measure):
        return periods
    usable = recording.of_series("cpu_usable_cores", "count")
    cores = usable.value if isinstance(usable, Measure) else recording.fact("cores") or 1.0
    held = recording.windows.growth("quota_throttled_total") / (recording.windows.grid.width * max(cores, 1.0))
    return recording.mean(np.minimum(held, 1.0), "share", recording.why_missing("quota_throttled_total"))


def blas_library(recording: TelemetryRecording) -> Measure | Missing:
    """The BLAS libraries of numpy and torch on the CPU, as text."""
    pools = recording.facts.get("blas_pools")
    entries = [pool for pool in pools if isinstance(pool, dict)] if isinstance(pools, list) else []
    loaded = [str(pool.get("library", "unknown")) for pool in entries if pool.get("api") == "blas"]
    built_with = recording.facts.get("torch_blas")
    libraries = sorted({*loaded, *([str(built_with)] if built_with else [])})
    return text_measure(", ".join(libraries)[:200]) if libraries else Missing("no BLAS is among the facts of the run")


def world_size(recording: TelemetryRecording) -> Measure | Missing:
    """Number of processes of the job (count)."""
    count = recording.fact("world_size")
    if not count:
        return Missing("world_size is not among the facts of the run")
    return Measure(count, "count", source=EVIDENCE_SOURCE)


def most_without_loader(recording: TelemetryRecording) -> Measure | Missing:
    """Largest share of the time that a CPU run can save if it does not wait for batches."""
    return _most_without(recording, "loader_wait")


def most_without_checkpoints(recording: TelemetryRecording) -> Measure | Missing:
    """Largest share of the time that a CPU run can save without checkpoints."""
    return _most_without(recording, "checkpoint")


def most_without_logging(recording: TelemetryRecording) -> Measure | Missing:
    """Largest share of the time that a CPU run can save without log writes."""
    return _most_without(recording, "logging", BESIDE_WRITER)


def most_without_collections(recording: TelemetryRecording) -> Measure | Missing:
    """Largest share of the time that a CPU run can save without garbage collections."""
    return _most_without(recording, "garbage_collection")


def most_without_evaluation(recording: TelemetryRecording) -> Measure | Missing:
    """Largest share of the time that a CPU run can save without evaluations."""
    return _most_without(recording, "evaluation")


def _most_without(recording: TelemetryRecording, column: str, rest_remains: float = 1.0) -> Measure | Missing:
    """Returns the largest share of the time that a CPU run can save if the time in `column` (the cost) becomes 0. The
    module's docstring describes the computation.

    `rest_remains` is a lower bound of the ratio: time of the other work of a step without the cost / its time with the
    cost. The ratio is 1 unless the cost slows all steps equally.
    """
    windows = recording.windows
    cost, wall, count = windows.highest(column)[2], windows.highest("wall")[2], windows.counts_of_steps
    if recording.on_device or np.isnan(cost).all():
        return Missing("the run has a device" if recording.on_device else recording.why_missing(column))
    known = ~np.isnan(wall)
    rest = np.maximum(wall - np.nan_to_num(cost), 0.0)[known]
    mean = float(np.average(wall[known], weights=count[known]))
    fast = percentile(rest, FAST, count[known]) * rest_remains * exp(-RUN_TO_RUN_NOISE)
    return Measure(min(max(1 - fast / mean, 0.0), 1.0), "share", "step", int(count.sum()), EVIDENCE_SOURCE)
