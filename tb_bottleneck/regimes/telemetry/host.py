"""host by telemetry: the device idles while the host is in neither loader, copies, forward, backward nor optimizer.

Signal: what is left of the step's time on the host, as far as the device idles.
Formula: that time / the time of the steps.
Threshold: as for traces.
Source: regimes/host.py. Threads that want a core: PSI some over 20 %, or more than 1.2 threads queued for each usable
core (our reading of the Linux documentation, accounting/psi). A quota counts from a tenth of its core time on.
"""

from tb_bottleneck.measure import Missing
from tb_bottleneck.measures.measure_set import Measures, TelemetryRecording
from tb_bottleneck.measures.telemetry.device_utilisation import process_cores
from tb_bottleneck.measures.telemetry.input_pipeline import cores_usable, device_idle
from tb_bottleneck.measures.telemetry.step_phases import (
    core_pressure,
    quota_throttled,
    run_queue_per_core,
    time_outside_phases,
    timed_phase_count,
)
from tb_bottleneck.regime import Regime
from tb_bottleneck.regimes.host import FIRES_AT
from tb_bottleneck.regimes.rule import ABSTAINS, CLEAR, FIRES, Cause, Judgement, Rule

QUOTA_LIMITS = 0.10
HIGH_CORE_PRESSURE, HIGH_RUN_QUEUE = 0.20, 1.2


def judge(measures: Measures[TelemetryRecording]) -> Judgement[TelemetryRecording]:
    """A host that is short of cores is late everywhere: then the cores are the cause, not the Python."""
    share = measures.account.share(Regime.HOST)
    for needed in (timed_phase_count, device_idle):
        seen = measures(needed)
        if isinstance(seen, Missing):
            return Judgement(ABSTAINS, share, missing=seen.because)
    short = _short_of_cores(measures)
    late = share + measures.account.share(Regime.LAUNCH)
    if short is not None and late >= FIRES_AT:
        return Judgement(FIRES, share, late, (Cause(short.name, late, short.evidence),))
    if share < FIRES_AT:
        return Judgement(CLEAR, share, share)
    return Judgement(FIRES, share, share, (Cause("host_python", share, (time_outside_phases, process_cores)),))


def _short_of_cores(measures: Measures[TelemetryRecording]) -> Cause[TelemetryRecording] | None:
    if measures.value(quota_throttled, 0.0) >= QUOTA_LIMITS:
        return Cause("cpu_quota", 0.0, (quota_throttled, cores_usable, core_pressure))
    if (
        measures.value(core_pressure, 0.0) >= HIGH_CORE_PRESSURE
        and measures.value(run_queue_per_core, 0.0) > HIGH_RUN_QUEUE
    ):
        return Cause("contended_cores", 0.0, (core_pressure, run_queue_per_core, cores_usable))
    return None


RULE = Rule(Regime.HOST, judge, FIRES_AT)
