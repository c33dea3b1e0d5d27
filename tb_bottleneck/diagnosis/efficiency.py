"""The efficiency of a recording, and what a run without a problem could still gain."""

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.diagnosis.parts import Parts
from tb_bottleneck.measures.efficiency.trace_figures import trace_figures
from tb_bottleneck.measures.efficiency.utilisation import utilisation
from tb_bottleneck.report.efficiency.figures import EfficiencyInputs
from tb_bottleneck.schema import bottleneck_pb2 as pb


def trace_efficiency(recording: Recording) -> EfficiencyInputs:
    """Returns the figures of a trace."""
    used = utilisation(recording)
    return EfficiencyInputs(trace_figures(recording), used.types, used.bf16_peak)


def add_headroom(
    report: pb.Report, parts: Parts, recording: Recording | None = None, parameters: float | None = None
) -> None:
    """Adds what remains beside the findings: of a trace's `recording`, or of a run with these `parameters`.

    The parameters are in bytes, None if they are not known.
    """
    if report.verdict.severity != "none" and recording is None:
        return
    from tb_bottleneck.report.efficiency.headroom import headroom_of  # few reports need its imports

    report.headroom.extend(parts.build("headroom", lambda: headroom_of(report, recording, parameters)) or [])
