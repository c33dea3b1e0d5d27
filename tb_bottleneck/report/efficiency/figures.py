"""Builds the efficiency part of a report. Trace and telemetry give different figures, with the same definitions.

Joins the efficiency of the trace and the telemetry of one process, which show different figures.

The trace counts the operations of a step, and telemetry times all steps without a profiler. If both have equal samples
per step, the utilisation of the run is (utilisation of the trace x step time of the trace / step time of telemetry).
"""

from collections.abc import Mapping

from tb_bottleneck.base.units import NS_PER_S
from tb_bottleneck.knowledge.texts import basis_text, because_text, figure_texts
from tb_bottleneck.measures.efficiency.figure import Figure, Figures, known, unknown
from tb_bottleneck.measures.efficiency.utilisation import Utilisation
from tb_bottleneck.report.digest import step_ns_of
from tb_bottleneck.schema import bottleneck_pb2 as pb

SAMPLES, TOKENS = "samples_per_step", "tokens_per_step"


def efficiency_of(inputs: Utilisation, window: pb.Window) -> pb.Efficiency:
    """Returns the efficiency part of a report: the known figures and, for each figure, a note with its definition and
    either its basis or the reason why the figure is not known. `inputs` has the figures by field name, including
    samples_per_step and tokens_per_step."""
    is_step = window.basis != "whole" and window.step_ns.mean > 0
    per_step = {field: inputs.figures.get(field, unknown("needs_trace")) for field in (SAMPLES, TOKENS)}
    figures = dict(inputs.figures)
    if not is_step:
        per_step = dict.fromkeys(per_step, unknown("no_steps"))
        figures["model_flops_per_step"] = unknown("no_steps")
    seconds = window.step_ns.mean / NS_PER_S
    samples = per_step[SAMPLES].value
    figures["samples_per_second"] = known(samples / seconds, "samples") if samples else unknown("no_samples")
    tokens = per_step[TOKENS]
    figures["tokens_per_second"] = tokens if tokens.value is None else known(tokens.value / seconds, tokens.text)
    message = pb.Efficiency(samples_basis=_text(per_step[SAMPLES]))
    for field in per_step:
        if (value := per_step[field].value) is not None:
            setattr(message, field, value)
    for name, share, peak in ((one.dtype, one.share, one.peak) for one in inputs.types):
        message.types.add(dtype=name, share=share, peak_flops=peak)
    add_figures(message, figures)
    return message


def with_rates(efficiency: pb.Efficiency, report: pb.Report) -> pb.Efficiency:
    """Returns `efficiency` with samples and tokens per second from the step time of `report` without the profiler, if
    that time is known."""
    step_ns = step_ns_of(report)
    if not report.HasField("unprofiled") or not step_ns:
        return efficiency
    result = pb.Efficiency()
    result.CopyFrom(efficiency)
    rates = {"samples_per_second": efficiency.samples_per_step, "tokens_per_second": efficiency.tokens_per_step}
    for field, per_step in rates.items():
        if efficiency.HasField(field):
            add_figures(result, {field: known(per_step / (step_ns / NS_PER_S), "unprofiled")})
    return result


def add_figures(message: pb.Efficiency, figures: Figures) -> None:
    """Sets `figures` in `message`, with a note about each. Other figures of the message stay unchanged."""
    notes = {note.field: note for note in message.notes}
    for text in figure_texts():
        figure = figures.get(text.field)
        if figure is None:
            continue
        note = pb.EfficiencyNote(field=text.field, title=text.title, unit=text.unit, definition=text.definition)
        if figure.value is None:
            message.ClearField(text.field)
            note.because = _text(figure)
        else:
            setattr(message, text.field, figure.value)
            note.basis = _text(figure)
        notes[text.field] = note
    set_notes(message, notes)


def set_notes(message: pb.Efficiency, notes: Mapping[str, pb.EfficiencyNote]) -> None:
    """Sets the notes of `message` in the order in which they are shown. `notes` maps field names to notes."""
    ordered = [notes[text.field] for text in figure_texts() if text.field in notes]
    del message.notes[:]
    message.notes.extend(ordered)


def _text(figure: Figure) -> str:
    return (because_text if figure.value is None else basis_text)(figure.text, figure.values)


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
