"""The difference between two runs by regime, and the difference of the steps without a profiler."""

from math import log

import numpy as np

from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.base.units import share_text
from tb_bottleneck.comparison.runs.compared_run import JudgedRun
from tb_bottleneck.comparison.significance import difference
from tb_bottleneck.comparison.texts.value_text import RELEVANT_CHANGE
from tb_bottleneck.schema import comparison_pb2 as pb


def unprofiled_difference(
    a: JudgedRun, b: JudgedRun, samples: tuple[int, int], recorded_noise: float
) -> pb.UnprofiledDifference | None:
    """Returns the difference between the step times that A and B measured without a profiler; None if a run did not
    measure them.

    Steps without a profiler are as long as in normal training, because only the profiler lengthens steps. Their times
    are divided by `samples`, the samples per step of A and B, or 1 for times per step. Old recordings contain only the
    median of these times. For old recordings, `recorded_noise` (`Difference.noise` of the recorded steps) says how much
    the steps vary.
    """
    if not (a.report.HasField("unprofiled") and b.report.HasField("unprofiled")):
        return None
    logged = a.report.unprofiled, b.report.unprofiled
    a_ns, b_ns = (each.step_ns / size for each, size in zip(logged, samples, strict=True))
    result = pb.UnprofiledDifference(
        a_ns=a_ns, b_ns=b_ns, speedup=a_ns / b_ns, a_steps=logged[0].steps, b_steps=logged[1].steps
    )
    if all(len(each.step_times_ns) > 1 for each in logged):
        times = [np.array(each.step_times_ns) / size for each, size in zip(logged, samples, strict=True)]
        measured = difference(*times)
        result.noise, result.difference, result.test = measured.noise, measured.verdict, measured.test
        if measured.by_means:  # there are repeated long steps, which medians do not show
            result.a_ns, result.b_ns = (float(np.mean(each)) for each in times)
            result.speedup = measured.mean_speedup
        return result
    result.noise = recorded_noise
    result.difference = _beyond(result.speedup, recorded_noise)
    result.test = f"their variation was not logged; recorded steps vary by {share_text(recorded_noise)}."
    return result


def _beyond(speedup: float, noise: float) -> str:
    """Returns "faster" or "slower" if the speedup differs from 1 by more than the relative uncertainty `noise` and by
    more than RELEVANT_CHANGE, otherwise "none"."""
    if abs(log(speedup)) <= max(noise, log(1 + RELEVANT_CHANGE)):
        return "none"
    return "faster" if speedup > 1 else "slower"


def waterfall(a: dict[Regime, float], b: dict[Regime, float]) -> list[pb.RegimeDelta]:
    """Returns one row for each regime, in the order of REGIMES, with its time in A, its time in B, and the difference
    `delta_ns` (b - a). `a` and `b` are times in ns by regime, which must contain all regimes."""
    return [
        pb.RegimeDelta(
            regime=regime, a_ns=a[regime], b_ns=b[regime], delta_ns=b[regime] - a[regime], title=regime.label
        )
        for regime in REGIMES
    ]
