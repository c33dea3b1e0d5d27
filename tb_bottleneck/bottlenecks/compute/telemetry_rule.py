"""compute by telemetry: the device's work is limited by arithmetic throughput, or a working device is slowed down.

Signal: arithmetic units in use, or power; reasons for reduced clocks; threads and cores of a CPU run.
Formula: as for memory; a throttled device loses its work x (1 - clock / highest clock).
Threshold: as for traces. Heat: 1 % of the loaded time. Power cap: the clock is below 0.9 of the highest while 0.97 of
the limit is drawn, because large boards normally run large products at the cap. Power brake: 1 %. Full precision: the
fp32 units work for 0.30 of the time, the matrix units for less than a quarter of that. For products in fp32 on an H200,
the two shares are 0.64 and 0.02. The same products in bf16 use the fp32 units for less than 0.05 of the time. On a CPU
run, more torch threads than cores cost all work of the process. Other programs on the cores are a cause as for host;
their cost is the time in which the process waits for a core, at most the part of the work that does not run, 1 - 1 /
(threads per core).
Source: bottlenecks/compute/rule.py; NVML, nvmlClocksEventReasons; a limit below the default is the owner's choice, and
reported.
"""

from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.compute.rule import FIRES_AT, MIN_PRODUCT_SHARE, OVERSUBSCRIBED
from tb_bottleneck.bottlenecks.compute.torch_build import (
    device_architecture,
    first_torch_for_device,
    newer_than_torch,
    newest_architecture,
    openblas_on_intel,
    processor,
    torch_blas,
)
from tb_bottleneck.bottlenecks.host.telemetry_rule import QUOTA_LIMITS, contended_cores
from tb_bottleneck.bottlenecks.input.pipeline import cores_usable, workers_beside_main
from tb_bottleneck.bottlenecks.recoverable import threads_to_use
from tb_bottleneck.bottlenecks.rule_types import ABSTAINS, CLEAR, FIRES, Cause, Judgement, Rule
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.telemetry import TelemetryRecording
from tb_bottleneck.measures.telemetry.device import (
    bandwidth_used,
    bound_known,
    bound_source,
    clock_reduction,
    fp32_used,
    heat_throttled,
    highest_temperature,
    loaded_power_share,
    mean_power_share,
    multiprocessors_used,
    own_work,
    power_braked,
    power_capped,
    power_limit_of_default,
    tensor_cores_used,
    time_lost_to_heat,
    time_lost_to_power,
)
from tb_bottleneck.measures.telemetry.host import (
    blas_library,
    core_pressure,
    intra_op_threads,
    quota_throttled,
    run_queue_per_core,
    torch_threads_per_core,
)

HEAT = 0.01
BRAKE = 0.01
IN_FP32, UNUSED_UNITS = 0.30, 0.25
CAPPED_CLOCK_LOST, CAPPED_POWER = 0.10, 0.97
# The reference implementation of BLAS, and builds that fall back to it, use neither vector units nor several threads.
SLOW_BLAS = ("netlib", "refblas", "reference", "generic")


def judge(measures: Measures[TelemetryRecording]) -> Judgement[TelemetryRecording]:
    """Returns the judgement of the regime `compute` for telemetry. Throttling is reported even if the counters do not
    show what limits the device's work."""
    share = measures.account.share(Regime.COMPUTE)
    causes = _of_device(measures, share) if measures.on_device else _contention(measures)
    bound = measures(bound_known)
    if causes:
        at_stake = max(cause.cost_share for cause in causes)
        return Judgement(FIRES, share, at_stake, causes)
    if isinstance(bound, Missing):
        return Judgement(ABSTAINS, share, missing=bound.because)
    status = FIRES if share >= FIRES_AT else CLEAR
    return Judgement(status, share, evidence=(tensor_cores_used, fp32_used, mean_power_share, bound_source))


def _of_device(measures: Measures[TelemetryRecording], share: float) -> tuple[Cause[TelemetryRecording], ...]:
    """Returns the causes of a run on a device: throttling, an old build of torch, and matrix products in fp32.
    `share` is the regime's share of the window."""
    return (*_throttling(measures), *_old_build(measures), *_full_precision(measures, share))


def _full_precision(measures: Measures[TelemetryRecording], share: float) -> tuple[Cause[TelemetryRecording], ...]:
    """Returns the cause `fp32_matmul` if fp32 units are in use and matrix units are nearly unused; otherwise (). The
    cost is `share`, the regime's share of the window."""
    in_fp32, in_matrix_units = measures.value(fp32_used, 0.0), measures.value(tensor_cores_used, 1.0)
    if share < MIN_PRODUCT_SHARE or in_fp32 < IN_FP32 or in_matrix_units > IN_FP32 * UNUSED_UNITS:
        return ()
    evidence = (fp32_used, tensor_cores_used, multiprocessors_used, bandwidth_used)
    return (Cause("fp32_matmul", share, evidence, bounded=False),)


def _throttling(measures: Measures[TelemetryRecording]) -> tuple[Cause[TelemetryRecording], ...]:
    """Returns the causes that reduce the device's clock: heat, a power brake, or a power limit."""
    causes = []
    if measures.value(heat_throttled, 0.0) >= HEAT:
        evidence = (heat_throttled, highest_temperature, clock_reduction, loaded_power_share)
        causes.append(Cause("thermal_throttle", measures.value(time_lost_to_heat, 0.0), evidence))
    reduction, power = measures(clock_reduction), measures(loaded_power_share)
    at_limit = isinstance(power, Measure) and power.value >= CAPPED_POWER
    slow = isinstance(reduction, Measure) and reduction.value > CAPPED_CLOCK_LOST
    lost = measures.value(time_lost_to_power, 0.0)
    if measures.value(power_braked, 0.0) >= BRAKE:
        causes.append(Cause("power_brake", lost, (power_braked, clock_reduction, loaded_power_share)))
    elif measures.value(power_capped, 0.0) >= HEAT and at_limit and slow:
        evidence = (power_capped, loaded_power_share, clock_reduction, power_limit_of_default)
        causes.append(Cause("power_cap", lost, evidence))
    return tuple(causes)


def _contention(measures: Measures[TelemetryRecording]) -> tuple[Cause[TelemetryRecording], ...]:
    """Returns at most one cause that slows the operators of a CPU run: a quota of CPU time, more threads than cores,
    other programs, or a slow BLAS library."""
    work = measures.value(own_work, 0.0)
    queued = measures.value(run_queue_per_core, 0.0)
    if measures.value(quota_throttled, 0.0) >= QUOTA_LIMITS:
        lost = min(measures.value(quota_throttled, 0.0), work)
        quota = (quota_throttled, cores_usable, core_pressure, threads_to_use, workers_beside_main)
        return (Cause("cpu_quota", lost, quota),)
    if measures.value(torch_threads_per_core, 0.0) > OVERSUBSCRIBED:
        threads = (
            torch_threads_per_core,
            intra_op_threads,
            cores_usable,
            run_queue_per_core,
            core_pressure,
            threads_to_use,
        )
        # Without timed phases, the work is not known, but the part of the work that does not run is known.
        at_stake = measures.value(own_work, 1.0 - 1.0 / max(queued, 1.0))
        return (Cause("oversubscribed_threads", at_stake, threads, bounded=False),)
    most = measures.value(own_work, 1.0) * (1.0 - 1.0 / max(queued, 1.0))
    contended = contended_cores(measures, most, bounded=False)
    if contended is not None:
        return (contended,)
    library = measures(blas_library)
    if isinstance(library, Measure) and any(word in library.text.lower() for word in SLOW_BLAS):
        return (Cause("slow_blas", work, (blas_library, own_work), bounded=False),)
    if measures.value(openblas_on_intel, 0.0):
        return (Cause("openblas_on_intel", 0.0, (torch_blas, processor), bounded=False),)
    return ()


def _old_build(measures: Measures[TelemetryRecording]) -> tuple[Cause[TelemetryRecording], ...]:
    """Returns the cause `torch_too_old`, without a cost, if the device is newer than this build of torch supports;
    otherwise ()."""
    if not measures.value(newer_than_torch, 0.0) and isinstance(measures(first_torch_for_device), Missing):
        return ()
    shown = (device_architecture, newest_architecture, first_torch_for_device)
    return (Cause("torch_too_old", 0.0, shown, bounded=False),)


RULE = Rule(Regime.COMPUTE, judge, FIRES_AT)
