"""Samples per second follow from the step time that leads the report."""

from tb_bottleneck.report.efficiency.figures import with_rates
from tb_bottleneck.schema import bottleneck_pb2 as pb


def _report(**unprofiled):
    report = pb.Report(efficiency=pb.Efficiency(samples_per_step=8, samples_per_second=4.0, tokens_per_step=100))
    report.window.step_ns.mean = 2e9
    if unprofiled:
        report.unprofiled.CopyFrom(pb.Unprofiled(**unprofiled))
    return with_rates(report.efficiency, report)


def test_a_known_step_time_without_the_profiler_counts():
    efficiency = _report(step_ns=1e9, step_times_ns=[0.5e9, 1.5e9, 1e9, 1e9])
    assert efficiency.samples_per_second == 8
    assert [note.basis for note in efficiency.notes] == ["per step / mean step time without the profiler"]
    assert not efficiency.HasField("tokens_per_second"), "they were not known before"


def test_otherwise_the_recorded_steps_count():
    assert _report().samples_per_second == 4.0
