"""compute: kernels run that are limited by arithmetic; on a CPU run, operators with many operations per byte.

Signal: device time of matrix products, convolutions and attention, by their names.
Formula: that time / the window; if shapes were recorded, a kernel counts here if its arithmetic takes longer at the
device's peak than its traffic at the device's bandwidth. Of the time that faster units or aligned shapes could save,
half counts as recoverable: casts and the smaller kernels around them take the other half (an estimate, until replays
measure it). Of work in float64, half counts as recoverable too: float32 has half of the bytes. On a CPU run with too
few threads, the cost is the share of unused cores x the work that torch divides among threads. None of this cost counts
as recoverable: nothing recorded shows that these cores are free, and that the work scales. With all cores instead of
half of them, a measured training took 2.8 times as long beside other programs (tests/measurements/ACCURACY.md,
tabular/threads_too_few). If the trace has the device's counters, a clock a tenth below the highest clock of the
recording is a cause, and costs the same share of the work's time.
Threshold: fires at 50 % of the window.
Source: a device regime limits the run if it owns more than half of the window; knowledge/kernels.toml lists the kernels
that contract. More or fewer threads than cores: torch's notes on CPU threading, and torchrun's own OMP_NUM_THREADS=1.
"""

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.compute.kernel_efficiency import (
    compute_reached,
    full_precision_products,
    half_type,
    misaligned_kernel,
    misaligned_products,
    peak_source,
    reachable_peak,
    reached_by_type,
    roofs_known,
    shapes_recorded,
    tf32_available,
    types_multiplied,
    without_bf16,
)
from tb_bottleneck.bottlenecks.compute.kernels import (
    cores,
    costliest_kernel,
    divisible_share,
    threads_per_core,
    torch_threads,
    unused_cores,
)
from tb_bottleneck.bottlenecks.compute.wide_types import costliest_in_double, double_precision_share
from tb_bottleneck.bottlenecks.rule_types import CLEAR, FIRES, Cause, Judgement, Rule
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.trace import Recording
from tb_bottleneck.measures.trace.hardware_counters import bandwidth_in_use, clock_below_highest, hottest, mean_power
from tb_bottleneck.measures.trace.process_facts import product_library

FIRES_AT = 0.50
# More runnable threads than cores cannot compute more, only take turns.
OVERSUBSCRIBED = 1.0
# Torch starts a thread for each physical core. If half of the cores have none, the number was set to less.
UNUSED_CORES = 0.5
# A tenth of the window in such products is worth reporting: traceml's warning level for overheads.
MIN_PRODUCT_SHARE = 0.10
RECOVERABLE_OF_PRODUCTS = 0.5
# As for telemetry (bottlenecks/compute/telemetry_rule.py): at the power limit, large products normally run at a clock
# up to a tenth below the highest.
LOW_CLOCK = 0.10

ROOFS = (compute_reached, roofs_known, shapes_recorded, reachable_peak, bandwidth_in_use)
"""Measures that show how the limits of kernels are known, and which part of these limits the kernels reach."""


def judge(measures: Measures[Recording]) -> Judgement[Recording]:
    """Returns the judgement of `compute` for a trace. On a CPU run, more threads than cores slow every operator. In
    this case the time of all operators counts, including the time of the regime `memory`."""
    account = measures.account
    share = account.share(Regime.COMPUTE)
    if not measures.on_device and measures.value(threads_per_core, otherwise=0.0) > OVERSUBSCRIBED:
        at_stake = share + account.share(Regime.MEMORY)
        cause = Cause(
            "oversubscribed_threads", at_stake, (threads_per_core, torch_threads, cores, product_library), bounded=False
        )
        return Judgement(FIRES, share, at_stake, (cause,))
    found = (
        _too_few_threads(measures), _double(measures), _full_precision(measures), _misaligned(measures),
        _low_clock(measures),
    )  # fmt: skip
    causes = tuple(cause for cause in found if cause is not None)
    recoverable = RECOVERABLE_OF_PRODUCTS * sum(cause.cost_share for cause in causes if cause.certain)
    # Work of few threads, in float64, or at a low clock, may be limited by memory.
    at_stake = share + (account.share(Regime.MEMORY) if found[0] or found[1] or found[4] else 0.0)
    status = FIRES if share >= FIRES_AT or causes else CLEAR
    return Judgement(status, share, min(recoverable, at_stake), causes, (costliest_kernel, *ROOFS))


def _too_few_threads(measures: Measures[Recording]) -> Cause[Recording] | None:
    """Returns the cause `too_few_threads` if a CPU run leaves at least UNUSED_CORES of its cores unused, and these
    cores could save at least MIN_PRODUCT_SHARE of the window. Otherwise returns None."""
    unused = measures.value(unused_cores, otherwise=0.0)
    if measures.on_device or unused < UNUSED_CORES:
        return None
    computing = measures.account.share(Regime.COMPUTE) + measures.account.share(Regime.MEMORY)
    at_stake = unused * computing * measures.value(divisible_share, otherwise=1.0)
    if at_stake < MIN_PRODUCT_SHARE:
        return None
    return Cause("too_few_threads", at_stake, (unused_cores, torch_threads, cores, product_library), certain=False)


def _low_clock(measures: Measures[Recording]) -> Cause[Recording] | None:
    """Returns the cause `low_clock` if the device's counters show a clock at least LOW_CLOCK below the highest clock of
    the recording while the device works, otherwise None."""
    distance = measures.value(clock_below_highest, otherwise=0.0)
    share = distance * sum(measures.account.share(regime) for regime in (Regime.COMPUTE, Regime.MEMORY))
    if distance < LOW_CLOCK or share < LOW_CLOCK / 2:
        return None
    return Cause("low_clock", share, (clock_below_highest, hottest, mean_power))


def _double(measures: Measures[Recording]) -> Cause[Recording] | None:
    """Returns the cause `double_precision` if operations in float64 take at least MIN_PRODUCT_SHARE of the window,
    otherwise None."""
    share = measures.value(double_precision_share, otherwise=0.0)
    if share < MIN_PRODUCT_SHARE:
        return None
    return Cause("double_precision", share, (double_precision_share, costliest_in_double), bounded=False)


def _full_precision(measures: Measures[Recording]) -> Cause[Recording] | None:
    """Returns a cause if matrix multiplications and convolutions in fp32 take at least MIN_PRODUCT_SHARE of the window,
    otherwise None. The name of the cause depends on whether the device has TF32."""
    share = measures.value(full_precision_products, otherwise=0.0)
    if share < MIN_PRODUCT_SHARE:
        return None
    name = "fp32_matmul" if measures.value(tf32_available, otherwise=0.0) else "fp32_without_tf32"
    types = () if name == "fp32_matmul" else (half_type, without_bf16)
    return Cause(name, share, (full_precision_products, types_multiplied, costliest_kernel, *types), bounded=False)


def _misaligned(measures: Measures[Recording]) -> Cause[Recording] | None:
    """Returns the cause `misaligned_shapes` if kernels chosen because of misaligned sizes take at least
    MIN_PRODUCT_SHARE of the window, otherwise None."""
    share = measures.value(misaligned_products, otherwise=0.0)
    if share < MIN_PRODUCT_SHARE:
        return None
    evidence = (misaligned_products, misaligned_kernel, reached_by_type, peak_source)
    return Cause("misaligned_shapes", share, evidence, bounded=False)


RULE = Rule(Regime.COMPUTE, judge, FIRES_AT)
