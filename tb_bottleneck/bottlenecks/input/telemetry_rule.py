"""input by telemetry: the device is idle while the host waits for the next batch.

Signal: host time in the loader's iterator, limited to the idle time of the device; low and fluctuating utilisation.
Formula: min(loader wait, idle time) / the time of the steps, window by window.
Threshold: as for traces; abstains if the loader's wait or the device's idle time was not recorded.
Source: bottlenecks/input/rule.py. Storage is slow if workers neither run nor wait for a core for more than 40 % of the
training's wait, or if each worker uses less than 60 % of a core while threads wait for storage (our reading of PSI,
Linux documentation, accounting/psi). No further worker could run if 90 % of the usable cores are busy and either each
worker uses 90 % of a core or there is a worker for each usable core. The loader's wait for a core is a cause of its own
if other processes use half of the usable cores or more while 90 % of the cores are busy. Restarts of workers are the
cause if half of the wait or more is at the starts of epochs and persistent_workers is False, and a new iterator for
each batch if such a start is in each step. A quota counts from a
tenth of its periods on, or of the core time that it allows: traceml's warning level for an overhead.
"""

import math
from dataclasses import replace

from tb_bottleneck.base.measure import Measure, Missing, known_value
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.compute.torch_build import numpy_blas
from tb_bottleneck.bottlenecks.host.telemetry_rule import MIN_CORE_WAIT, QUOTA_LIMITS, contended_cores
from tb_bottleneck.bottlenecks.input.loader_model import (
    gain_of_workers,
    gain_within_cores,
    least_gain_of_workers,
    limit_with_workers,
    most_gain_of_workers,
)
from tb_bottleneck.bottlenecks.input.loader_workers import MOSTLY_WAITS
from tb_bottleneck.bottlenecks.input.pipeline import (
    cores_busy,
    cores_of_others,
    cores_usable,
    device_idle,
    disk_busy,
    idle_in_loader,
    live_workers,
    loader_wait_time,
    loading_off_core,
    operating_system,
    own_cores_while_loading,
    slowest_stage,
    storage_pressure,
    time_per_batch,
    utilisation_deviation,
    waiting_workers_to_try,
    worker_busy,
    worker_count_to_try,
    worker_processes_needed,
    worker_start,
    workers_ahead,
    workers_beside_main,
    workers_now,
    workers_restart,
)
from tb_bottleneck.bottlenecks.input.rule import CORES_FOR_WORKER, FIRES_AT, SEVERAL_BATCHES
from tb_bottleneck.bottlenecks.input.storage import dataset_storage, read_per_sample, storage_advice, workers_wait
from tb_bottleneck.bottlenecks.interruption.telemetry_facts import (
    epoch_length,
    epoch_start_wait,
    first_batch_time,
    steps_per_iterator,
    time_to_first_step,
)
from tb_bottleneck.bottlenecks.recoverable import loader_core_wait, threads_beside_others, threads_to_use
from tb_bottleneck.bottlenecks.rule_types import ABSTAINS, CLEAR, FIRES, Cause, Judgement, Rule
from tb_bottleneck.measures.measure_set import MeasureFunction, Measures
from tb_bottleneck.measures.telemetry import TelemetryRecording
from tb_bottleneck.measures.telemetry.host import most_without_loader, quota_throttled

Evidence = tuple[MeasureFunction[TelemetryRecording], ...]

LAZY_WORKER = 0.60
STORAGE_HOLDS = 0.20
SATURATED_WORKER, SATURATED_CORES = 0.90, 0.90
# Linux divides busy cores evenly among all threads that can run. Workers that use less than this share of the cores
# were waiting for something else, although others keep the cores busy. A choice, below the share of one worker beside
# three other processes.
LEAST_SHARE_OF_CORES = 0.2
MOST_OF_WAIT = 0.5
# If workers have no batch to make for this share of the time, their queue is full, and the training does not wait for
# them to make a batch, but for a core, or to take the batch over. A choice.
MOST_OF_TIME_AHEAD = 0.5
# Taking a batch from a worker took up to 3.2 ms (bottlenecks/input/loader_workers.py). A longer wait has another
# reason, even if the workers keep up on average. A choice.
LONGEST_TAKING_NS = 10e6
MOST_OF_CORES = 0.5


def judge(measures: Measures[TelemetryRecording]) -> Judgement[TelemetryRecording]:
    """Returns the judgement of `input` for telemetry. The wait for batches decides whether the rule fires. The state of
    the workers, cores and storage decides the cause."""
    share = measures.account.share(Regime.INPUT)
    for needed in (loader_wait_time, device_idle):
        signal = measures(needed)
        if isinstance(signal, Missing):
            return Judgement(ABSTAINS, share, missing=signal.because, evidence=(utilisation_deviation,))
    if share < FIRES_AT:
        return Judgement(CLEAR, share, share)
    main_waits = contended_cores(measures, share)
    if main_waits is not None and measures.value(workers_ahead, 0.0) >= MOST_OF_TIME_AHEAD:
        return Judgement(FIRES, share, main_waits.cost_share, (main_waits,))
    contended = _contended(measures, share)
    cause = replace(_cause(measures, share), most=known_value(measures(most_without_loader)))
    cause = replace(cause, factor=_factor(measures, cause), gain=_gain(measures, cause))
    return Judgement(FIRES, share, share, (cause,) if contended is None else (cause, contended))


def _factor(measures: Measures[TelemetryRecording], cause: Cause[TelemetryRecording]) -> float | None:
    """Returns what bounds the speed-up of the step: advised number of workers / present number, and for workers that
    wait, also the cores. Returns None if `cause` does not advise a number of workers, or if one of the numbers is not
    known."""
    now = measures.value(workers_now, 0.0)
    advised = next(
        (measure for measure in cause.evidence if measure in (worker_count_to_try, waiting_workers_to_try)), None
    )
    to_try = measures(advised) if advised is not None and now >= 1 else None
    within = measures.value(gain_within_cores, math.inf) if advised is waiting_workers_to_try else math.inf
    return min(to_try.value / now, max(within, 1.0)) if isinstance(to_try, Measure) else None


def _gain(
    measures: Measures[TelemetryRecording], cause: Cause[TelemetryRecording]
) -> tuple[float, float, float] | None:
    """Returns the gain of the advised number of workers by the model of the loader; None if `cause` advises no number,
    or if the model lacks a figure."""
    if worker_count_to_try not in cause.evidence:
        return None
    found = [known_value(measures(each)) for each in (gain_of_workers, least_gain_of_workers, most_gain_of_workers)]
    known = [value for value in found if value is not None]
    return (known[0], known[1], known[2]) if len(known) == len(found) else None


def _contended(measures: Measures[TelemetryRecording], share: float) -> Cause[TelemetryRecording] | None:
    """Returns the cause `contended_cores` if other processes use the cores that the loader needs, else None. `share` is
    the regime's share of the window.

    The cost is the loader's wait for a core. This wait is also part of the cost of the loader's own cause.
    """
    waits = measures.value(loader_core_wait, 0.0)
    crowded = measures.value(cores_busy, 0.0) >= SATURATED_CORES
    if not crowded or measures.value(cores_of_others, 0.0) < MOST_OF_CORES or waits < MIN_CORE_WAIT:
        return None
    shown = (
        loader_core_wait,
        cores_of_others,
        cores_busy,
        cores_usable,
        idle_in_loader,
        workers_beside_main,
        threads_beside_others,
    )
    return Cause("contended_cores", share * waits, shown)


def _cause(measures: Measures[TelemetryRecording], share: float) -> Cause[TelemetryRecording]:
    """Returns the cause of the waits for batches. Its cost is `share`, a share of the window. The docstring of the
    module describes the conditions."""
    stages: Evidence = (slowest_stage, time_per_batch, worker_processes_needed)
    wait: Evidence = (idle_in_loader, loader_wait_time, utilisation_deviation, *stages, operating_system)
    if measures.value(quota_throttled, 0.0) >= QUOTA_LIMITS:
        return Cause("cpu_quota", share, (quota_throttled, cores_usable, *wait, threads_to_use, workers_beside_main))
    at_starts = measures.value(epoch_start_wait, 0.0)
    if measures.value(steps_per_iterator, math.inf) < SEVERAL_BATCHES and at_starts >= MOST_OF_WAIT:
        kept = (steps_per_iterator, epoch_start_wait, first_batch_time, *wait)
        return Cause("iterator_per_batch", share * at_starts, kept)
    if measures.value(workers_restart, 0.0) and at_starts >= MOST_OF_WAIT:
        starts = (
            epoch_start_wait,
            first_batch_time,
            epoch_length,
            time_to_first_step,
            worker_start,
            workers_now,
            *wait,
        )
        return Cause("restarted_workers", share * at_starts, starts)
    workers = measures.value(live_workers, otherwise=-1.0)  # -1 if not recorded
    keeps_up = measures.value(worker_processes_needed, math.inf) <= workers
    ahead = keeps_up or measures.value(workers_ahead, 0.0) >= MOST_OF_TIME_AHEAD
    if workers >= 0.5 and ahead and measures.value(loader_wait_time, 0.0) <= LONGEST_TAKING_NS:
        return Cause("tensor_handover", share, (workers_ahead, live_workers, *wait))
    if workers >= 0.5 and measures.value(workers_wait, 0.0) > 1.0 - LAZY_WORKER:
        evidence = (
            workers_wait,
            worker_busy,
            live_workers,
            dataset_storage,
            read_per_sample,
            storage_pressure,
            disk_busy,
        )
        return Cause("slow_storage", share, (*evidence, *wait, waiting_workers_to_try, storage_advice))
    waits_for_storage = measures.value(storage_pressure, 0.0) >= STORAGE_HOLDS
    # Without workers the process itself makes the batches, and computing them takes a whole core.
    busy = worker_busy if workers >= 0.5 else own_cores_while_loading
    if waits_for_storage and measures.value(busy, 0.0) < LAZY_WORKER:
        makers = (worker_busy, live_workers) if workers >= 0.5 else (own_cores_while_loading,)
        return _slow_storage(share, (storage_pressure, disk_busy, *makers), wait)
    if workers < 0:
        return Cause("slow_loader", share, (*wait, live_workers, worker_count_to_try))
    needs_core = measures.value(loading_off_core, 0.0) < MOSTLY_WAITS
    if workers < 0.5 and needs_core and measures.value(cores_usable, math.inf) < CORES_FOR_WORKER:
        return Cause("too_few_cores", share, (cores_busy, cores_usable, live_workers, *wait, numpy_blas))
    advice = (worker_count_to_try, limit_with_workers)
    if workers < 0.5:
        waits = () if needs_core else (loading_off_core,)
        return Cause("loader_in_main_process", share, (*wait, *waits, live_workers, cores_busy, *advice))
    crowded = measures.value(cores_busy, 0.0) >= SATURATED_CORES
    used = measures.value(worker_busy, 1.0) * workers / measures.value(cores_usable, math.inf)
    one_for_each_core = workers >= measures.value(cores_usable, math.inf)
    waits_for_core = measures.value(loader_core_wait, 0.0) >= MIN_CORE_WAIT
    if crowded and one_for_each_core and used < LEAST_SHARE_OF_CORES and not waits_for_core:
        return _slow_storage(share, (worker_busy, live_workers, cores_busy), wait)
    saturated = one_for_each_core or measures.value(worker_busy, 0.0) >= SATURATED_WORKER
    if saturated and crowded:
        return Cause("too_few_cores", share, (cores_busy, cores_usable, worker_busy, live_workers, *wait, numpy_blas))
    return Cause("too_few_workers", share, (live_workers, worker_busy, cores_busy, *wait, *advice))


def _slow_storage(share: float, shown: Evidence, wait: Evidence) -> Cause[TelemetryRecording]:
    """Returns the cause `slow_storage` with the cost `share`. `shown` are the measures that show the slow storage,
    `wait` those that show the wait for batches."""
    evidence = (*shown, dataset_storage, read_per_sample, *wait, waiting_workers_to_try, storage_advice)
    return Cause("slow_storage", share, evidence)


RULE = Rule(Regime.INPUT, judge, FIRES_AT)
