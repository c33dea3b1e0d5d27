"""The figures of efficiency that telemetry gives. The operations of a step are not among them."""

from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.measures.efficiency.figure import Figure, Figures, known, unknown
from tb_bottleneck.measures.telemetry.energy import joules_per_step
from tb_bottleneck.measures.telemetry.goodput import goodput

_OF_THE_OPERATIONS = ("mfu", "hfu", "model_flops_per_step", "peak_flops")
_OF_A_TRACE = ("tensor_share", "occupancy", "tokens_per_step")


def telemetry_figures(recording: TelemetryRecording) -> Figures:
    """Returns the figures."""
    return {
        **dict.fromkeys(_OF_THE_OPERATIONS, unknown("telemetry_only")),
        **dict.fromkeys(_OF_A_TRACE, unknown("needs_trace")),
        "sm_efficiency": _figure(recording.of_series("sm_activity", "share", of_device=True), "counter"),
        "samples_per_step": _figure(recording.per_step("samples", "count"), "monitor"),
        "goodput": goodput(recording),
        "joules_per_step": joules_per_step(recording),
    }


def _figure(measure: Measure | Missing, basis: str) -> Figure:
    if isinstance(measure, Missing):
        return unknown("as_stated", because=measure.because)
    return known(measure.value, basis)
