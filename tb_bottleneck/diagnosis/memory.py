"""The memory part of the report of a trace."""

from tb_bottleneck.base.measure import Missing
from tb_bottleneck.memory.findings import findings_of
from tb_bottleneck.memory.forecast.batch_scaling import samples_of
from tb_bottleneck.memory.forecast.forecasts import Forecaster
from tb_bottleneck.memory.memory_course import course_of
from tb_bottleneck.memory.trace_memory import trace_memory
from tb_bottleneck.report.builders.memory import memory_message
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.trace.steps import Steps
from tb_bottleneck.trace.trace import Trace


def recorded_memory(trace: Trace, steps: Steps) -> pb.Memory | None:
    """Returns the memory part of the report of `trace`, or None if no usable memory events were recorded. `steps` are
    the steps of the trace."""
    memory = trace_memory(trace)
    if isinstance(memory, Missing):
        return None
    sites = memory.sites(memory.at_peak)
    forecasts = Forecaster(memory, samples_of(memory)).all() if memory.phases.trains else ()
    findings = findings_of(memory, steps)
    return memory_message(memory.account, sites, findings, forecasts, course_of(memory, steps.host))
