"""input by telemetry: the device is idle while the host waits for the next batch.

Signal: host time in the loader's iterator, as far as the device idles; utilisation that is low and fluctuates.
Formula: min(loader wait, idle time) / the time of the steps, window by window.
Threshold: as for traces; abstains where the loader's wait or the device's idle time was not recorded.
Source: regimes/input.py. Workers below 60 % of a core each while storage holds threads up: slow storage (our reading of
PSI, Linux documentation, accounting/psi). Workers at 90 % and 90 % of the usable cores busy: no worker more would run.
A quota counts from a tenth of its periods, or of the core time that it allows, on: traceml's warning level for an
overhead.
"""

from tb_bottleneck.measure import Missing
from tb_bottleneck.measures.measure_set import Measures, TelemetryRecording
from tb_bottleneck.measures.telemetry.input_pipeline import (
    cores_busy,
    cores_usable,
    device_idle,
    disk_busy,
    idle_in_loader,
    live_workers,
    loader_wait_time,
    own_cores_while_loading,
    storage_pressure,
    utilisation_deviation,
    worker_busy,
)
from tb_bottleneck.measures.telemetry.step_phases import quota_throttled
from tb_bottleneck.regime import Regime
from tb_bottleneck.regimes.input import FIRES_AT
from tb_bottleneck.regimes.rule import ABSTAINS, CLEAR, FIRES, Cause, Judgement, Rule

LAZY_WORKER = 0.60
STORAGE_HOLDS = 0.20
SATURATED_WORKER, SATURATED_CORES = 0.90, 0.90
QUOTA_LIMITS = 0.10


def judge(measures: Measures[TelemetryRecording]) -> Judgement[TelemetryRecording]:
    """The wait proves it; the workers and the storage tell why."""
    share = measures.account.share(Regime.INPUT)
    for needed in (loader_wait_time, device_idle):
        seen = measures(needed)
        if isinstance(seen, Missing):
            return Judgement(ABSTAINS, share, missing=seen.because, evidence=(utilisation_deviation,))
    if share < FIRES_AT:
        return Judgement(CLEAR, share, share)
    return Judgement(FIRES, share, share, (_cause(measures, share),))


def _cause(measures: Measures[TelemetryRecording], share: float) -> Cause[TelemetryRecording]:
    seen = (idle_in_loader, loader_wait_time, utilisation_deviation)
    if measures.value(quota_throttled, 0.0) >= QUOTA_LIMITS:
        return Cause("cpu_quota", share, (quota_throttled, cores_usable, *seen))
    alive = measures.value(live_workers, otherwise=-1.0)
    storage = measures.value(storage_pressure, 0.0) >= STORAGE_HOLDS
    # Without workers the process itself makes the batches, and computing them takes a whole core.
    doer = worker_busy if alive >= 0.5 else own_cores_while_loading
    if storage and measures.value(doer, 0.0) < LAZY_WORKER:
        by = (worker_busy, live_workers) if alive >= 0.5 else (own_cores_while_loading,)
        return Cause("slow_storage", share, (storage_pressure, disk_busy, *by, *seen))
    if alive < 0:
        return Cause("slow_loader", share, (*seen, live_workers))
    if alive < 0.5:
        return Cause("loader_in_main_process", share, (*seen, live_workers, cores_busy))
    full = measures.value(worker_busy, 0.0) >= SATURATED_WORKER
    if full and measures.value(cores_busy, 0.0) >= SATURATED_CORES:
        return Cause("too_few_cores", share, (cores_busy, cores_usable, worker_busy, live_workers, *seen))
    return Cause("too_few_workers", share, (live_workers, worker_busy, cores_busy, *seen))


RULE = Rule(Regime.INPUT, judge, FIRES_AT)
