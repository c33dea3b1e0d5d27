"""Two witnesses of one process: what they say about each other, and when they keep silent."""

import pytest

from tb_bottleneck.report.cross_check import join, lines_of
from tb_bottleneck.schema import bottleneck_pb2 as pb


def told(witness: str, step_ms: float, rank: int | None = 0, **shares: float) -> pb.Report:
    """A report whose regimes fire from a tenth of the step on."""
    report = pb.Report(witness=witness, evidence_source=witness, rank=rank)
    report.verdict.regime = "input"
    report.window.steps = 500 if witness == "telemetry" else 6
    report.window.basis = "step_clock" if witness == "telemetry" else "profiler_step"
    report.window.step_ns.median = step_ms * 1e6
    for regime, share in shares.items():
        status = "fires" if share >= 0.1 else "clear"
        report.regimes.add(regime=regime, status=status, share=share, title=regime.capitalize())
    return report


def test_where_they_disagree_both_say_so_and_whom_to_believe():
    trace, telemetry = told("trace", 100, input=0.41, compute=0.5), told("telemetry", 98, input=0.02, compute=0.5)
    join([("/runs/a", trace), ("/runs/a", telemetry)])
    assert (trace.evidence_source, telemetry.evidence_source) == ("both", "telemetry")
    for report in (trace, telemetry):
        (difference,) = report.disagreements
        assert (difference.regime, difference.trace, difference.telemetry) == ("input", "fires", "clear")
        assert "the trace sees 41 % of its few steps, telemetry 2.0 % of 500" in difference.sentence


def test_on_the_device_the_trace_is_believed():
    trace, telemetry = told("trace", 100, memory=0.6), told("telemetry", 100, memory=0.05)
    join([("a", trace), ("a", telemetry)])
    assert "believe it" in trace.disagreements[0].sentence


@pytest.mark.parametrize(
    ("recorded", "says"),
    [(180, "the profiler makes it 1.80 times as long"), (101, "changes little"), (80, "what slows the others")],
)
def test_the_unprofiled_step_tells_what_the_profiler_costs(recorded, says):
    trace, telemetry = told("trace", recorded), told("telemetry", 100)
    join([("a", trace), ("a", telemetry)])
    assert trace.unprofiled.step_ns == 100e6
    assert trace.unprofiled.ratio == pytest.approx(recorded / 100)
    assert says in next(lines_of(trace))
    assert not telemetry.HasField("unprofiled")


def test_other_runs_other_ranks_and_small_differences_are_left_alone():
    elsewhere, rank1 = told("trace", 100, input=0.5), told("trace", 100, rank=1, input=0.5)
    near = told("trace", 100, input=0.12)
    telemetry = told("telemetry", 100, input=0.09)
    join([("b", elsewhere), ("a", rank1), ("a", near), ("a", telemetry)])
    assert (elsewhere.evidence_source, rank1.evidence_source, near.evidence_source) == ("trace", "trace", "both")
    assert not [report for report in (elsewhere, rank1, near, telemetry) if report.disagreements]


def test_abstaining_is_no_disagreement():
    trace, telemetry = told("trace", 100, sync=0.4), told("telemetry", 100, sync=0.0)
    telemetry.regimes[0].status = "abstains"
    join([("a", trace), ("a", telemetry)])
    assert not trace.disagreements


def test_of_a_cpu_telemetry_cannot_infer_what_bounds_it():
    """A share of 0 that nobody measured was held against what the trace saw: "0 % from the device's counters"."""
    trace, telemetry = told("trace", 100, compute=0.3), told("telemetry", 100, compute=0.0)
    telemetry.regimes[0].status = "fires"  # for threads that wait, say
    trace.regimes[0].status = "clear"
    telemetry.device.kind = "cpu"
    join([("a", trace), ("a", telemetry)])
    assert not trace.disagreements
