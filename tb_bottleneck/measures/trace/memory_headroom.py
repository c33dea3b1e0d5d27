"""How much larger the batch could be before the device's memory is full."""

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.memory.forecast.forecasts import Forecaster
from tb_bottleneck.memory.forecast.samples import samples_of
from tb_bottleneck.memory.trace_memory import trace_memory


def fitting_batch(recording: Recording) -> Measure | Missing:
    """Largest power of two by which the batch can be multiplied so that the predicted peak still fits (count)."""
    memory = trace_memory(recording.trace)
    if isinstance(memory, Missing):
        return memory
    samples = samples_of(memory)
    if samples is None or memory.account.capacity is None:
        return Missing("the samples of a step or the size of the device's memory are not recorded")
    return Measure(float(Forecaster(memory, samples).largest_factor(memory.account.capacity)), "count")
