"""host by telemetry: the device is idle while the host is outside loader, copies, forward, backward and optimizer.

Signal: the host's time in a step outside these parts, limited to the idle time of the device.
Formula: that time / the time of the steps.
Threshold: as for traces.
Source: bottlenecks/host/rule.py. There are too few cores if at least one thread waits for a core for over 20 % of the
time (PSI `some`), if there are more than 1.2 runnable threads per usable core (our reading of the Linux documentation,
accounting/psi), and if the process itself waits for a core for a tenth of the time (traceml's warning level for
overheads): a process that sleeps on a crowded machine loses nothing. A quota counts from a tenth of its core time on.
More torch threads than cores (bottlenecks/compute/rule.py) are the cause if the process waits.
"""

from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.compute.rule import OVERSUBSCRIBED
from tb_bottleneck.bottlenecks.host.rule import FIRES_AT
from tb_bottleneck.bottlenecks.input.pipeline import cores_usable, device_idle, workers_beside_main
from tb_bottleneck.bottlenecks.recoverable import (
    contention_limit,
    core_wait,
    thread_runs,
    threads_beside_others,
    threads_to_use,
)
from tb_bottleneck.bottlenecks.rule_types import ABSTAINS, CLEAR, FIRES, Cause, Judgement, Rule
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.telemetry import TelemetryRecording
from tb_bottleneck.measures.telemetry.device import process_cores
from tb_bottleneck.measures.telemetry.host import (
    core_pressure,
    intra_op_threads,
    quota_throttled,
    run_queue_per_core,
    time_outside_phases,
    timed_phase_count,
    torch_threads_per_core,
)

QUOTA_LIMITS = 0.10
HIGH_CORE_PRESSURE, HIGH_RUN_QUEUE = 0.20, 1.2
MIN_CORE_WAIT = 0.10


def judge(measures: Measures[TelemetryRecording]) -> Judgement[TelemetryRecording]:
    """Returns the judgement of `host` for telemetry. If too few cores delay the host, Python is a cause of the
    remaining time only."""
    share = measures.account.share(Regime.HOST)
    for needed in (timed_phase_count, device_idle):
        signal = measures(needed)
        if isinstance(signal, Missing):
            return Judgement(ABSTAINS, share, missing=signal.because)
    delay = share + measures.account.share(Regime.LAUNCH)
    too_few_cores = _too_few_cores(measures, delay)
    if too_few_cores is not None and delay >= FIRES_AT:
        # The wait for a core is taken to be as long outside the phases as within them.
        alone = share * (1.0 - measures.value(core_wait, 0.0))
        causes = (too_few_cores, _python(measures, alone)) if alone >= FIRES_AT else (too_few_cores,)
        return Judgement(FIRES, share, max(too_few_cores.cost_share, share), causes)
    if share < FIRES_AT:
        return Judgement(CLEAR, share, share)
    return Judgement(FIRES, share, share if measures.on_device else 0.0, (_python(measures, share),))


def _python(measures: Measures[TelemetryRecording], cost: float) -> Cause[TelemetryRecording]:
    """Returns the cause `host_python` with the cost `cost` (share of the window). On a CPU run the cause is not certain
    and has no bound, because operators outside the timed phases cannot be distinguished from Python."""
    evidence = (time_outside_phases, thread_runs, process_cores)
    return Cause("host_python", cost, evidence, bounded=measures.on_device, certain=measures.on_device)


def _too_few_cores(measures: Measures[TelemetryRecording], cost: float) -> Cause[TelemetryRecording] | None:
    """Returns the reason why the process has too few cores: a quota, more torch threads than cores, or other programs.
    Returns None if the process has enough cores. `cost` is the upper limit of the cause's cost (share of the
    window)."""
    if measures.value(quota_throttled, 0.0) >= QUOTA_LIMITS:
        return Cause(
            "cpu_quota", cost, (quota_throttled, cores_usable, core_pressure, threads_to_use, workers_beside_main)
        )
    waits = measures.value(core_wait, 0.0)
    if measures.value(torch_threads_per_core, 0.0) > OVERSUBSCRIBED and waits >= MIN_CORE_WAIT:
        threads = (
            torch_threads_per_core,
            intra_op_threads,
            cores_usable,
            core_wait,
            run_queue_per_core,
            threads_to_use,
        )
        return Cause("oversubscribed_threads", min(cost, waits), threads)
    return contended_cores(measures, cost)


def contended_cores(
    measures: Measures[TelemetryRecording], most: float, bounded: bool = True
) -> Cause[TelemetryRecording] | None:
    """Returns the cause `contended_cores` if other threads on the machine keep this process from running, else None.

    The cost is the share of the time in which the process waits for a core, at most `most` (share of the window). If
    some steps have no such wait, the time of these steps gives a further limit, and the cause is bounded. Otherwise
    nothing recorded shows the time without the wait, and `bounded` is that of the returned cause.
    """
    pressure, queue = measures.value(core_pressure, 0.0), measures.value(run_queue_per_core, 0.0)
    waits = measures.value(core_wait, 0.0)
    if pressure < HIGH_CORE_PRESSURE or queue <= HIGH_RUN_QUEUE or waits < MIN_CORE_WAIT:
        return None
    evidence = (
        core_wait,
        process_cores,
        core_pressure,
        run_queue_per_core,
        cores_usable,
        workers_beside_main,
        threads_beside_others,
    )
    limit = measures(contention_limit)
    if isinstance(limit, Measure):
        return Cause("contended_cores", min(most, waits, limit.value), evidence)
    return Cause("contended_cores", min(most, waits), evidence, bounded)


RULE = Rule(Regime.HOST, judge, FIRES_AT)
