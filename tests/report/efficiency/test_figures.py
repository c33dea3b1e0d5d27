"""The message of the figures: derived ones, notes in one order, and nothing for what is not known."""

import pytest
from helpers.drawn_gpt import Gpt

from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.knowledge.texts import figure_texts
from tb_bottleneck.report.efficiency.figures import joined_efficiency
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text.efficiency import efficiency_lines, figure_text
from tb_bottleneck.text.terminal import Layout


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return diagnose(Gpt().write(tmp_path_factory.mktemp("gpt")))


def test_figures_of_a_step_are_per_second(report):
    found, step = report.efficiency, report.window.step_ns.mean / 1e9
    assert found.tokens_per_second == pytest.approx(Gpt().tokens / step)
    assert found.samples_per_second == pytest.approx(Gpt().batch / step)
    assert 0 < found.mfu < found.hfu < 1
    assert [(one.dtype, round(one.share, 6)) for one in found.types] == [("bf16", 1.0)]


def test_each_figure_has_a_note_with_its_definition(report):
    texts = [text.field for text in figure_texts()]
    assert [note.field for note in report.efficiency.notes] == texts
    for note in report.efficiency.notes:
        assert note.definition
        assert bool(note.because) != bool(note.basis)
        assert report.efficiency.HasField(note.field) == bool(note.basis)


def test_every_figure_is_a_field_of_the_message():
    assert {text.field for text in figure_texts()} <= {field.name for field in pb.Efficiency.DESCRIPTOR.fields}


def test_the_section_is_short_and_has_the_definition(report):
    lines = Layout(100).text(efficiency_lines(report.efficiency)).splitlines()
    assert len(lines) < 20
    assert sum("Model FLOPs utilisation" in line for line in lines) == 1
    assert not any("Energy" in line for line in lines)
    assert not list(efficiency_lines(pb.Efficiency(samples_basis="not known")))


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.413, "share", "41 %"),
        (9.89e14, "flops_per_s", "989 TFLOP/s"),
        (3.4e11, "flops", "340 GFLOP"),
        (13145.2, "per_second", "13,145 /s"),
        (0.3456, "joules", "0.346 J"),
    ],
)
def test_values_have_units(value, unit, text):
    assert figure_text(value, unit) == text


def telemetry_of(report, slower, samples):
    found = pb.Report(window=pb.Window(steps=50, basis="step_clock"))
    found.window.step_ns.mean = report.window.step_ns.mean * slower
    found.efficiency.samples_per_step = samples
    for field, value in (("joules_per_step", 5.0), ("goodput", 0.5)):
        setattr(found.efficiency, field, value)
        found.efficiency.notes.add(field=field, basis="the board")
    return found


def test_trace_and_telemetry_of_one_run_share_their_figures(report):
    trace = pb.Report()
    trace.CopyFrom(report)
    telemetry = telemetry_of(report, 0.8, Gpt().batch)
    of_trace, of_run = joined_efficiency(trace, telemetry)
    assert (of_trace.joules_per_step, of_trace.goodput) == (5.0, 0.5)
    assert of_run.mfu == pytest.approx(report.efficiency.mfu / 0.8)
    assert of_run.peak_flops == report.efficiency.peak_flops


def test_runs_of_other_samples_share_no_utilisation(report):
    trace = pb.Report()
    trace.CopyFrom(report)
    telemetry = telemetry_of(report, 0.8, Gpt().batch + 1)
    _, of_run = joined_efficiency(trace, telemetry)
    assert not of_run.HasField("mfu")


def test_unknown_figures_of_a_saved_report_are_not_shown(report):
    saved = pb.Report()
    saved.CopyFrom(report)
    for field in ("", "notes", "samples_basis"):
        saved.efficiency.notes.add(field=field, title="unknown", unit="x", because="unknown")
    assert list(efficiency_lines(saved.efficiency)) == list(efficiency_lines(report.efficiency))
