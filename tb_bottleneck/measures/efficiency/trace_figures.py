"""The figures of efficiency that a trace gives. Energy is not among them."""

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.measures.batch_size import batch_size_of
from tb_bottleneck.measures.efficiency.device_use import device_use
from tb_bottleneck.measures.efficiency.figure import Figures, unknown
from tb_bottleneck.measures.efficiency.throughput import goodput_of_trace, samples_figure, tokens_per_step
from tb_bottleneck.measures.efficiency.utilisation import utilisation


def trace_figures(recording: Recording) -> Figures:
    """Returns the figures."""
    return {
        **utilisation(recording).figures,
        **device_use(recording),
        "samples_per_step": samples_figure(batch_size_of(recording)),
        "tokens_per_step": tokens_per_step(recording),
        "goodput": goodput_of_trace(recording),
        "joules_per_step": unknown("needs_telemetry"),
    }
