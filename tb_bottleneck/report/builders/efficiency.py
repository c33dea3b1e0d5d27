"""The efficiency part of a report: samples per second."""

from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.measures.batch_size import SamplesPerStep
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.units import NS_PER_S

Samples = SamplesPerStep | Measure | Missing
"""The samples of a step of one process: from a trace, or from the monitor, which counts them."""


def efficiency_of(samples: Samples, window: pb.Window) -> pb.Efficiency:
    """Returns the samples per second: samples per step / mean step time. Both are absent if one of them is unknown."""
    if window.basis == "whole" or not window.step_ns.mean > 0:
        return pb.Efficiency(samples_basis="no steps are known: call prof.step() after each")
    match samples:
        case Missing():
            return pb.Efficiency(samples_basis=samples.because)
        case SamplesPerStep():
            count, basis = float(samples.samples), samples.basis
        case Measure():
            count, basis = samples.value, "batches counted by the monitor"
    per_second = count / (window.step_ns.mean / NS_PER_S)
    return pb.Efficiency(samples_per_second=per_second, samples_per_step=count, samples_basis=basis)
