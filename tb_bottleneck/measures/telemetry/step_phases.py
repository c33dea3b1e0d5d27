"""What the host does while the device idles: phases, waits, allocations, interruptions, and too few cores."""

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.attribution.telemetry.window_signals import PHASES
from tb_bottleneck.measure import Measure, Missing, text_measure

STEADY = 0.2
"""Distances between interruptions that differ by less than this part of their median are called a period."""


def step_time(testimony: TelemetryRecording) -> Measure | Missing:
    """Time of a step, mean (ns)."""
    return testimony.per_step("wall", "ns")


def timed_phase_count(testimony: TelemetryRecording) -> Measure | Missing:
    """Phases of the step that were timed (count); missing where one was not, whose time then looks like Python's."""
    for name in PHASES:
        if isinstance(testimony.per_step(name, "ns"), Missing):
            return Missing(testimony.why_missing(name))
    return Measure(float(len(PHASES)), "count", "step", source=EVIDENCE_SOURCE)


def phase_time(testimony: TelemetryRecording) -> Measure | Missing:
    """Host time in forward, backward and optimizer, per step (ns)."""
    parts = [testimony.per_step(name, "ns") for name in PHASES]
    known = [part for part in parts if isinstance(part, Measure)]
    if not known:
        return Missing("the phases of the step were not recorded")
    return Measure(sum(part.value for part in known), "ns", "step", known[0].count, EVIDENCE_SOURCE)


def host_waits(testimony: TelemetryRecording) -> Measure | Missing:
    """Calls that made the host wait for the device, per step (count)."""
    return testimony.per_step("syncs", "count")


def idle_inside_phases(testimony: TelemetryRecording) -> Measure | Missing:
    """Of the judged time, what the device idles inside the step for a reason that is not told (share)."""
    accounts = testimony.accounts
    inside = np.where(np.isnan(accounts.idle), np.nan, accounts.ambiguous)
    return testimony.mean(inside, "share", "neither gpu_utilisation nor device_busy was recorded")


def time_outside_phases(testimony: TelemetryRecording) -> Measure | Missing:
    """Host time of a step outside loader, copies, forward, backward and optimizer (ns)."""
    told = timed_phase_count(testimony)
    if isinstance(told, Missing):
        return told
    wall, phases = step_time(testimony), phase_time(testimony)
    if isinstance(wall, Missing) or isinstance(phases, Missing):
        return wall if isinstance(wall, Missing) else phases
    others = [testimony.per_step(name, "ns") for name in ("loader_wait", "transfer")]
    inside = phases.value + sum(part.value for part in others if isinstance(part, Measure))
    return Measure(max(wall.value - inside, 0.0), "ns", "step", wall.count, EVIDENCE_SOURCE)


def blocks_allocated(testimony: TelemetryRecording) -> Measure | Missing:
    """Blocks that the allocator asked the driver for, per step (count)."""
    return testimony.per_step("device_allocations", "count")


def blocks_freed(testimony: TelemetryRecording) -> Measure | Missing:
    """Blocks that the allocator gave back to the driver, per step (count)."""
    return testimony.per_step("device_frees", "count")


def allocations_retried(testimony: TelemetryRecording) -> Measure | Missing:
    """Allocations that first had to empty the cache, per step (count)."""
    return testimony.per_step("allocation_retries", "count")


def peak_memory_share(testimony: TelemetryRecording) -> Measure | Missing:
    """Device memory in use, of what there is, highest (share)."""
    used = testimony.windows.readings("memory_used", of_device=True)[1]
    total = testimony.windows.readings("memory_total", of_device=True)[1]
    if not len(used) or not len(total) or total.max() <= 0:
        return Missing(testimony.why_missing("memory_used"))
    return Measure(min(float(used.max() / total.max()), 1.0), "share", "", len(used), EVIDENCE_SOURCE)


def long_steps(testimony: TelemetryRecording) -> Measure | Missing:
    """Steps more than three times as long as their neighbours (count)."""
    return Measure(float(len(testimony.excess.number)), "count", "window", source=EVIDENCE_SOURCE)


def long_step_excess(testimony: TelemetryRecording) -> Measure | Missing:
    """By how much such a step is longer, median (ns)."""
    ns = testimony.excess.ns
    if not len(ns):
        return Missing("no step was off the cadence")
    return Measure(float(np.median(ns)), "ns", "call", len(ns), EVIDENCE_SOURCE)


def long_step_period(testimony: TelemetryRecording) -> Measure | Missing:
    """How often they come (words)."""
    apart = np.diff(testimony.excess.number)
    if len(apart) < 2:
        return Missing("too few of them for a period")
    usual = float(np.median(apart))
    steady = np.median(np.abs(apart - usual)) <= STEADY * usual
    text = f"every {usual:,.0f} steps" if steady else f"every {apart.min()} to {apart.max():,} steps"
    return text_measure(text, len(apart))


def torch_threads_per_core(testimony: TelemetryRecording) -> Measure | Missing:
    """Torch's threads in all processes on this machine, for each core that is usable (count)."""
    threads, cores = testimony.fact("torch_threads"), testimony.fact("cores")
    if not threads or not cores:
        return Missing("torch_threads or cores is not among the facts of the run")
    return Measure(threads * (testimony.fact("local_world_size") or 1.0) / cores, "count", source=EVIDENCE_SOURCE)


def intra_op_threads(testimony: TelemetryRecording) -> Measure | Missing:
    """Torch's intra-op threads in this process (count)."""
    threads = testimony.fact("torch_threads")
    if not threads:
        return Missing("torch_threads is not among the facts")
    return Measure(threads, "count", source=EVIDENCE_SOURCE)


def run_queue_per_core(testimony: TelemetryRecording) -> Measure | Missing:
    """Threads that run or want to run, for each core that is usable, mean (count)."""
    queue = testimony.of_series("run_queue", "count")
    usable = testimony.of_series("cpu_usable_cores", "count")
    cores = usable.value if isinstance(usable, Measure) else testimony.fact("cores")
    if isinstance(queue, Missing) or not cores:
        return queue if isinstance(queue, Missing) else Missing(testimony.why_missing("cpu_usable_cores"))
    return Measure(queue.value / cores, "count", "", queue.count, EVIDENCE_SOURCE)


def core_pressure(testimony: TelemetryRecording) -> Measure | Missing:
    """Of the time, what some thread waited for a core: PSI some (share)."""
    return testimony.of_series("cpu_pressure", "share")


def quota_throttled(testimony: TelemetryRecording) -> Measure | Missing:
    """Periods in which the CPU quota was used up; else, of the core time that it allows, what it held back (share)."""
    periods = testimony.of_series("quota_throttled_periods", "share")
    if isinstance(periods, Measure):
        return periods
    usable = testimony.of_series("cpu_usable_cores", "count")
    cores = usable.value if isinstance(usable, Measure) else testimony.fact("cores") or 1.0
    held = testimony.windows.growth("quota_throttled_total") / (testimony.windows.grid.width * max(cores, 1.0))
    return testimony.mean(np.minimum(held, 1.0), "share", testimony.why_missing("quota_throttled_total"))


def blas_library(testimony: TelemetryRecording) -> Measure | Missing:
    """What numpy and torch multiply with on the CPU (words)."""
    pools = testimony.facts.get("blas_pools")
    entries = [pool for pool in pools if isinstance(pool, dict)] if isinstance(pools, list) else []
    found = [str(pool.get("library", "unknown")) for pool in entries if pool.get("api") == "blas"]
    built = testimony.facts.get("torch_blas")
    told = sorted({*found, *([str(built)] if built else [])})
    return text_measure(", ".join(told)[:200]) if told else Missing("no BLAS is among the facts of the run")
