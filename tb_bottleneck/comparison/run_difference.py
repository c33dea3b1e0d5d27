"""The difference of the mean steps of two runs, which the monitor timed over the whole runs."""

from math import exp, hypot, log, sqrt

from tb_bottleneck.base.deviations import MEAN_STEP_ON_CPU, SAME_KERNELS
from tb_bottleneck.comparison.texts.value_text import RELEVANT_CHANGE
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.schema.bottleneck_pb2 import Window

# The 97.5 % quantiles of Student's t distribution with nine degrees of freedom (ten parts of a run), and of the normal
# distribution.
OF_PARTS, OF_STARTS = 2.262, 1.960


def run_difference(
    a: Window | None, b: Window | None, samples: tuple[int, int], on_device: bool
) -> pb.RunDifference | None:
    """Returns the difference of the mean steps in the telemetry windows `a` and `b`; None if one of them is None,
    or does not state the error of its mean, such as a report of an older version.

    Times are divided by `samples`, the samples per step of A and B, or 1 for times per step. The interval combines the
    errors of both means with the variation between two starts of a training, which no run shows.
    """
    if a is None or b is None or not (a.HasField("mean_error") and b.HasField("mean_error")):
        return None
    if min(a.step_ns.mean, b.step_ns.mean) <= 0:
        return None
    a_ns, b_ns = a.step_ns.mean / samples[0], b.step_ns.mean / samples[1]
    starts = SAME_KERNELS if on_device else MEAN_STEP_ON_CPU
    reach = hypot(OF_PARTS * a.mean_error, OF_PARTS * b.mean_error, OF_STARTS * sqrt(2) * starts)
    speedup = a_ns / b_ns
    beyond = abs(log(speedup)) > max(reach, log(1 + RELEVANT_CHANGE))
    return pb.RunDifference(
        a_ns=a_ns,
        b_ns=b_ns,
        speedup=speedup,
        low=speedup * exp(-reach),
        high=speedup * exp(reach),
        difference=("faster" if speedup > 1 else "slower") if beyond else "none",
        a_steps=a.steps,
        b_steps=b.steps,
    )
