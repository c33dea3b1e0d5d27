"""Joins the efficiency of the trace and the telemetry of one process, which show different figures.

The trace counts the operations of a step, and telemetry times all steps without a profiler. If both have equal samples
per step, the utilisation of the run is (utilisation of the trace x step time of the trace / step time of telemetry).
"""

from tb_bottleneck.measures.efficiency.figure import known
from tb_bottleneck.report.efficiency.figures import add_figures, set_notes
from tb_bottleneck.schema import bottleneck_pb2 as pb

_FROM_TELEMETRY = ("goodput", "joules_per_step")
_FROM_TRACE = ("tensor_share", "model_flops_per_step", "peak_flops")
_OF_TIME = ("mfu", "hfu")


def joined_efficiency(trace: pb.Report, telemetry: pb.Report) -> tuple[pb.Efficiency, pb.Efficiency] | None:
    """Returns the efficiency of `trace` and of `telemetry`, each with the figures of the other one; None if one of them
    has none.

    Figures of telemetry about all steps replace those of the trace. If the samples per step differ, the figures of the
    trace are not added to telemetry."""
    if not (trace.HasField("efficiency") and telemetry.HasField("efficiency")):
        return None
    of_trace, of_run = pb.Efficiency(), pb.Efficiency()
    of_trace.CopyFrom(trace.efficiency)
    of_run.CopyFrom(telemetry.efficiency)
    _copy(of_run, of_trace, _FROM_TELEMETRY)
    if not _same_steps(of_trace, of_run):
        return of_trace, of_run
    _copy(of_trace, of_run, _FROM_TRACE)
    if not of_run.types:
        of_run.types.extend(of_trace.types)
    seconds, in_trace = telemetry.window.step_ns.mean, trace.window.step_ns.mean
    if trace.window.basis == "whole" or telemetry.window.basis == "whole" or not seconds > 0:
        return of_trace, of_run
    figures = {
        field: known(getattr(of_trace, field) * in_trace / seconds, "from_trace")
        for field in _OF_TIME
        if of_trace.HasField(field)
    }
    if max((figure.value or 0.0 for figure in figures.values()), default=0.0) <= 1.0:
        add_figures(of_run, figures)
    return of_trace, of_run


def _same_steps(one: pb.Efficiency, other: pb.Efficiency) -> bool:
    both = one.HasField("samples_per_step") and other.HasField("samples_per_step")
    return not both or one.samples_per_step == other.samples_per_step


def _copy(source: pb.Efficiency, target: pb.Efficiency, fields: tuple[str, ...]) -> None:
    """Copies those figures in `fields` that `source` has, with their notes, to `target`."""
    notes = {note.field: note for note in target.notes}
    for note in source.notes:
        if note.field in fields and source.HasField(note.field):
            setattr(target, note.field, getattr(source, note.field))
            notes[note.field] = note
    set_notes(target, notes)
