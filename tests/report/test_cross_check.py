"""The trace and the telemetry of one process: what their reports say about each other, and when they say nothing."""

import pytest

from tb_bottleneck.report.cross_check import join, sentences_of
from tb_bottleneck.report.digest import Digest
from tb_bottleneck.report.trace_or_telemetry import trust_of
from tb_bottleneck.schema import bottleneck_pb2 as pb


def report_of(source: str, step_ms: float, rank: int | None = 0, **shares: float) -> pb.Report:
    """Returns a report with regimes that fire from a tenth of the step on."""
    report = pb.Report(evidence_source=source, rank=rank)
    report.verdict.regime = "input"
    report.window.steps = 500 if source == "telemetry" else 6
    report.window.basis = "step_clock" if source == "telemetry" else "profiler_step"
    report.window.step_ns.median = step_ms * 1e6
    for regime, share in shares.items():
        status = "fires" if share >= 0.1 else "clear"
        report.regimes.add(regime=regime, status=status, share=share, title=regime.capitalize())
    return report


def test_if_they_disagree_both_reports_say_so_and_which_one_to_trust():
    trace, telemetry = (
        report_of("trace", 100, input=0.41, compute=0.5),
        report_of("telemetry", 98, input=0.02, compute=0.5),
    )
    trace, telemetry = join([("/runs/a", trace), ("/runs/a", telemetry)])
    assert (trace.evidence_source, telemetry.evidence_source) == ("both", "telemetry")
    for report in (trace, telemetry):
        (difference,) = report.disagreements
        assert (difference.regime, difference.trace, difference.telemetry) == ("input", "fires", "clear")
        assert "41 % of the few steps in the trace, 2.0 % of 500 unprofiled steps" in difference.sentence


def test_for_device_regimes_the_trace_is_trusted():
    trace, telemetry = report_of("trace", 100, memory=0.6), report_of("telemetry", 100, memory=0.05)
    trace, telemetry = join([("a", trace), ("a", telemetry)])
    assert "trust it" in trace.disagreements[0].sentence


@pytest.mark.parametrize(
    ("recorded", "says"),
    [(180, "the profiler makes it 1.80 times as long"), (101, "changes little"), (80, "why the others are slower")],
)
def test_the_unprofiled_step_gives_the_profiler_overhead(recorded, says):
    trace, telemetry = report_of("trace", recorded), report_of("telemetry", 100)
    trace, telemetry = join([("a", trace), ("a", telemetry)])
    assert trace.unprofiled.step_ns == 100e6
    assert trace.unprofiled.ratio == pytest.approx(recorded / 100)
    assert says in trace.unprofiled.sentence
    assert not telemetry.HasField("unprofiled")


def test_an_overhead_that_was_measured_next_to_the_recorded_steps_is_the_only_one():
    trace, telemetry = report_of("trace", 170), report_of("telemetry", 131)
    trace.health.reasons.add(code="profiler_overhead", detail="The median step takes 62.3 ms without the profiler")
    trace.unprofiled.step_ns = 62.3e6
    telemetry.window.step_ns.mean = 131e6
    trace, _ = join([("a", trace), ("a", telemetry)])
    assert trace.unprofiled.step_ns == 62.3e6
    assert (trace.unprofiled.run_step_ns, trace.unprofiled.run_steps) == (131e6, 500), "what lists show"
    assert not trace.unprofiled.sentence


def test_other_runs_other_ranks_and_small_differences_are_left_alone():
    elsewhere, rank1 = report_of("trace", 100, input=0.5), report_of("trace", 100, rank=1, input=0.5)
    near = report_of("trace", 100, input=0.12)
    telemetry = report_of("telemetry", 100, input=0.09)
    reports = join([("b", elsewhere), ("a", rank1), ("a", near), ("a", telemetry)])
    assert [report.evidence_source for report in reports] == ["trace", "trace", "both", "telemetry"]
    assert not [report for report in reports if report.disagreements]


def test_the_reports_that_were_given_stay_as_they_are():
    trace, telemetry = report_of("trace", 100, input=0.41), report_of("telemetry", 98, input=0.02)
    join([("a", trace), ("a", telemetry)])
    assert trace.evidence_source == "trace"
    assert not trace.disagreements


def test_abstaining_is_no_disagreement():
    trace, telemetry = report_of("trace", 100, sync=0.4), report_of("telemetry", 100, sync=0.0)
    telemetry.regimes[0].status = "abstains"
    trace, telemetry = join([("a", trace), ("a", telemetry)])
    assert not trace.disagreements


def test_of_a_cpu_telemetry_cannot_infer_what_bounds_it():
    """A share of 0 that was not measured was compared with the trace: "0 % from the device's counters"."""
    trace, telemetry = report_of("trace", 100, compute=0.3), report_of("telemetry", 100, compute=0.0)
    telemetry.regimes[0].status = "fires"  # for example because of threads that wait
    trace.regimes[0].status = "clear"
    telemetry.device.kind = "cpu"
    trace, telemetry = join([("a", trace), ("a", telemetry)])
    assert not trace.disagreements


def verdict_of(source: str, regime: str, share: float, severity: str, confidence: str, **regimes: str) -> pb.Report:
    """Returns a report with a verdict, and the statuses of other regimes."""
    report = report_of(source, 100)
    report.verdict.CopyFrom(pb.Verdict(regime=regime, share=share, severity=severity, confidence=confidence))
    for name, status in regimes.items():
        report.regimes.add(regime=name, status=status, share=0.02)
    return report


@pytest.mark.parametrize(
    ("own", "others", "trusted"), [(0.2, 0.3, "trace"), (0.2, 0.61, "telemetry"), (0.08, 0.1, "telemetry")]
)
def test_the_program_comes_before_other_programs_of_the_machine(own: float, others: float, trusted: str) -> None:
    """On a shared machine, `nice -n 10` took the headline from causes of the training itself."""
    seen = verdict_of("trace", "host", own, "warning", "high")
    said = verdict_of("telemetry", "compute", others, "warning", "medium", input="clear")
    seen.findings.add(cause="host_python", regime="host", cost_share=own)
    said.findings.add(cause="contended_cores", regime="compute", cost_share=others)
    (joined, _) = join([("a", seen), ("a", said)])
    assert joined.verdict == {"trace": seen, "telemetry": said}[trusted].verdict
    assert ("can be fixed here" in joined.others[0].because) == (trusted == "trace")


@pytest.mark.parametrize(
    ("trace", "telemetry", "cause", "trusted", "because"),
    [
        (("host", 0.2, "warning"), ("unexplained", 1.0, "none", "low"), "", "trace", "only from outside"),
        (("compute", 0.6, "none"), ("memory", 0.6, "none", "medium"), "", "trace", "each kernel"),
        (("host", 0.2, "warning"), ("compute", 0.3, "warning", "low"), "contended_cores", "telemetry", "the machine"),
        (("input", 0.6, "critical"), ("compute", 0.3, "info", "medium"), "contended_cores", "trace", "a worse problem"),
        (("compute", 0.6, "none"), ("input", 0.3, "critical", "medium"), "", "telemetry", "unprofiled"),
        (("launch", 0.5, "critical"), ("input", 0.1, "warning", "medium"), "", "trace", "Only a trace"),
        (("launch", 0.3, "warning"), ("host", 0.5, "info", "medium"), "", "trace", "what can be saved"),
        (("input", 0.3, "warning"), ("host", 0.5, "info", "medium"), "", "telemetry", "unprofiled"),
        (("memory", 0.4, "info"), ("interruption", 0.3, "critical", "medium"), "", "telemetry", "unprofiled"),
        (("input", 0.4, "critical"), ("compute", 0.7, "none", "medium"), "", "telemetry", "2.0 %"),
        (("host", 0.4, "critical"), ("input", 0.3, "warning", "low"), "", "trace", "low confidence"),
    ],
)
def test_one_verdict_is_given_with_the_source_that_is_trusted(trace, telemetry, cause, trusted, because):
    seen = verdict_of("trace", *trace, "high")
    said = verdict_of("telemetry", *telemetry, launch="abstains", input="clear")
    if cause:
        said.findings.add(cause=cause)
    joined = join([("a", seen), ("a", said)])
    for report in joined:
        assert report.verdict == {"trace": seen, "telemetry": said}[trusted].verdict
        assert {other.witness: other.trusted for other in report.others} == {
            "trace": trusted == "trace",
            "telemetry": trusted == "telemetry",
        }
        assert because in report.others[0].because
        assert any("alone says" in sentence for sentence in sentences_of(report))


LOGDIR, MONITORED = "/runs/a", "/runs/a/tb_bottleneck/20261121-110503_rank0_4711"


def test_a_trace_of_the_trainings_own_profiler_is_joined_with_the_only_monitor_of_its_logdir():
    trace, telemetry = report_of("trace", 100, input=0.5), report_of("telemetry", 100, input=0.5)
    assert join([(LOGDIR, trace), (MONITORED, telemetry)])[0].evidence_source == "both"
    several = join([(LOGDIR, trace), (LOGDIR, trace), (MONITORED, telemetry)])
    assert [report.evidence_source for report in several] == ["trace", "trace", "telemetry"]
    runs = [(MONITORED, telemetry), (MONITORED.replace("4711", "4712"), telemetry)]
    assert join([(LOGDIR, trace), *runs])[0].evidence_source == "trace"


def test_a_finding_of_the_other_source_has_no_occurrence_on_its_clock():
    seen, said = report_of("trace", 100, input=0.6), report_of("telemetry", 100, input=0.5)
    finding = seen.findings.add(cause="loader_in_main_process", regime="input")
    finding.evidence.add(label="Longest", begin_ns=5.0, end_ns=9.0)
    trace, telemetry = join([("a", seen), ("a", said)])
    assert trace.findings[0].evidence[0].HasField("begin_ns")
    assert telemetry.findings[0].cause == "loader_in_main_process"


def test_a_plan_without_the_cause_of_its_first_fix_is_not_shown():
    """Telemetry names the storage; the plan of the trace, more workers first, would advise against the headline."""
    trace, telemetry = report_of("trace", 100, input=0.4), report_of("telemetry", 100, input=0.4)
    trace.findings.add(cause="too_few_workers", regime="input")
    trace.findings.add(cause="host_python", regime="host")
    trace.plan.add(cause="host_python", speedup_total=1.1)
    trace.plan.add(cause="too_few_workers", speedup_total=1.5)
    trace.plan.add(cause="host_python", speedup_total=1.6)
    telemetry.verdict.severity = trace.verdict.severity = "warning"
    telemetry.findings.add(cause="slow_storage", regime="input")
    trace, telemetry = join([("a", trace), ("a", telemetry)])
    assert [finding.cause for finding in trace.findings] == ["slow_storage", "host_python"]
    assert [step.speedup_total for step in trace.plan] == [1.1]


def trained(step_ms: float, *operators: tuple[str, float], place: str = "", name: str = "a") -> pb.Report:
    """Returns the report of a trace with steps of this length, its operators per step, and the line of its finding."""
    trace = report_of("trace", step_ms, host=0.5)
    trace.source = name
    trace.window.step_ns.mean = step_ms * 1e6
    trace.verdict.regime, trace.verdict.severity, trace.verdict.confidence = "host", "critical", "high"
    for operator, count in operators:
        trace.operators.add(name=operator, per_step=count)
    finding = trace.findings.add(cause="host_python", regime="host", cost_share=0.5)
    if place:
        finding.where.add(file="train.py", line=7, function=place, share=0.9)
    return trace


def monitored(step_ms: float, cause: str = "host_python") -> pb.Report:
    telemetry = report_of("telemetry", step_ms, host=0.6)
    telemetry.window.step_ns.mean = step_ms * 1e6
    telemetry.verdict.regime, telemetry.verdict.severity, telemetry.verdict.headline = "input", "critical", "Waits."
    telemetry.findings.add(cause=cause, regime="host", cost_share=0.6)
    return telemetry


@pytest.mark.parametrize(("step_ms", "source"), [(100, "trace"), (60, "trace"), (40, "telemetry"), (300, "trace")])
def test_a_trace_of_short_steps_does_not_speak_for_a_run_of_long_ones(step_ms, source):
    """Steps of 40 ms in a run of 100 ms per step: what takes the other 60 ms is not in the trace."""
    trace, telemetry = trained(step_ms), monitored(100)
    telemetry.verdict.regime = "host"
    trace, telemetry = join([("a", trace), ("a", telemetry)])
    (trusted,) = (other for other in trace.others if other.trusted)
    assert trusted.witness == source
    assert ("40 % of the run's time" in trusted.because) == (source == "telemetry")


@pytest.mark.parametrize(
    ("regime", "recorded", "of_run", "steps", "source"),
    [
        ("input", 0.17, 0.82, 100, "telemetry"),  # the queue was full when the profiler started
        ("input", 0.6, 0.2, 100, "telemetry"),
        ("input", 0.5, 0.55, 100, "trace"),  # two recordings of one training
        ("input", 0.17, 0.82, 10, "trace"),  # too few steps
        ("launch", 0.2, 0.8, 100, "trace"),  # the monitor does not time it
    ],
)
def test_the_run_decides_about_what_the_monitor_times_in_each_step(regime, recorded, of_run, steps, source):
    trace, telemetry = trained(100), monitored(100)
    for report, share in ((trace, recorded), (telemetry, of_run)):
        report.verdict.regime, report.verdict.share, report.verdict.severity = regime, share, "critical"
    telemetry.window.steps = steps
    trace, _ = join([("a", trace), ("a", telemetry)])
    (trusted,) = (other.witness for other in trace.others if other.trusted)
    assert trusted == source
    assert trace.verdict.share == (recorded if source == "trace" else of_run)


def test_the_gain_of_the_loader_is_that_of_a_model_of_the_run():
    """The trace promises 2.4 times on two cores; the run knows what the cores allow."""
    trace, telemetry = trained(100), monitored(100)
    for report, gain in ((trace, 2.4), (telemetry, 1.12)):
        report.verdict.CopyFrom(pb.Verdict(regime="input", share=0.5, severity="critical", action="promised"))
        del report.findings[:]
        finding = report.findings.add(cause="loader_in_main_process", regime="input", cost_share=0.5)
        finding.fix.action = "Use workers"
        finding.speedup.CopyFrom(pb.Speedup(expected=gain, low=gain - 0.3, high=gain + 0.3, basis="replay"))
    trace.plan.add(cause="loader_in_main_process", title="Use workers", speedup_total=2.4, low=2.1, high=2.7)
    joined, _ = join([("a", trace), ("a", telemetry)])
    assert joined.findings[0].speedup.expected == 1.12
    assert [(step.cause, step.speedup_total) for step in joined.plan] == [("loader_in_main_process", 1.12)]
    assert joined.verdict.action.startswith("Use workers: about 1.1")
    assert joined.verdict.severity == "warning"
    telemetry.findings[0].speedup.basis = "bound"
    assert join([("a", trace), ("a", telemetry)])[0].findings[0].speedup.expected == 2.4, "a bound is no prediction"


@pytest.mark.parametrize(("compiles", "source"), [(0.1, "trace"), (0.8, "telemetry")])
def test_a_short_run_that_mostly_compiles_is_no_run_of_steps(compiles, source):
    """Of 40 s, 33 s were compilation, and the headline was about Python in the steps after it."""
    trace, telemetry = trained(100), monitored(100, "compilation")
    telemetry.findings[0].cost_share = compiles
    telemetry.verdict.severity = "info"
    trace.verdict.severity = "warning"
    trace, telemetry = join([("a", trace), ("a", telemetry)])
    (trusted,) = (other.witness for other in trace.others if other.trusted)
    assert trusted == source
    assert "compilation" in {finding.cause for finding in trace.findings}


def test_a_verdict_of_the_telemetry_has_the_line_of_the_trace():
    telemetry = monitored(100)
    telemetry.verdict.regime = "host"
    trace, telemetry = join([("a", trained(40, place="search")), ("a", telemetry)])
    assert telemetry.findings[0].where[0].function == "search"
    assert telemetry.verdict.headline == "Waits. Most of it is in search (train.py:7)."
    assert trace.verdict.headline == telemetry.verdict.headline


@pytest.mark.parametrize(
    ("later", "says"),
    [
        ((("aten::mean", 400.0), ("aten::mm", 4.0)), "10 to 404; aten::mean 6 to 400"),
        ((("aten::mean", 6.0), ("aten::mm", 4.0)), "10 and 10: their number does not grow"),
    ],
)
def test_two_traces_name_the_operators_that_grow(later, says):
    first = trained(20, ("aten::mean", 6.0), ("aten::mm", 4.0), name="1")
    last = trained(200, *later, name="2", place="kept")
    *_, telemetry = join([("a", first), ("a", last), ("a", monitored(100, "growing_steps"))])
    assert says in telemetry.findings[0].evidence[-1].text
    assert telemetry.findings[0].where[0].function == "kept", "of the latest trace"


def test_the_line_that_calls_the_operators_that_grow_is_named():
    first = trained(20, ("aten::mean", 6.0), name="1")
    last = trained(200, ("aten::mm", 20.0), ("aten::mean", 400.0), name="2", place="forward")
    last.operators[1].place.CopyFrom(pb.Place(file="train.py", line=3, function="history", share=0.9))
    *_, telemetry = join([("a", first), ("a", last), ("a", monitored(100, "growing_steps"))])
    assert [place.function for place in telemetry.findings[0].where] == ["history"]


def test_work_that_grows_has_no_line_of_all_the_work():
    """The trace names the line with most of the work of a step, which need not be the part that grows."""
    telemetry, trace = monitored(100, "growing_steps"), trained(40, place="forward")
    telemetry.findings[0].regime = trace.findings[0].regime = telemetry.verdict.regime = "compute"
    (trace, telemetry) = join([("a", trace), ("a", telemetry)])
    assert not telemetry.findings[0].where


def test_a_trace_that_leads_says_that_its_steps_are_not_like_the_others():
    trace, telemetry = trained(100), monitored(100)
    telemetry.verdict.severity = "none"
    telemetry.findings[0].cause = "growing_within_epochs"
    trace, _ = join([("a", trace), ("a", telemetry)])
    assert [finding.cause for finding in trace.findings] == ["host_python", "growing_within_epochs"]


@pytest.mark.parametrize(("corrected", "source"), [(True, "telemetry"), (False, "trace")])
def test_a_share_of_short_steps_is_a_smaller_share_of_the_run(corrected, source):
    """A checkpoint in each tenth step took 37 % of the run, and the optimizer 37 % of the steps between them."""
    trace, telemetry = verdict_of("trace", "launch", 0.37, "critical", "high"), monitored(100, "checkpointing")
    telemetry.verdict.CopyFrom(pb.Verdict(regime="interruption", share=0.36, severity="critical", confidence="medium"))
    telemetry.regimes.add(regime="launch", status="abstains")
    trace.window.step_ns.mean, trace.unprofiled.step_ns = 65e6, 100e6  # the steps before the trace have checkpoints
    if corrected:
        trace.window.recorded_step_ns = 80e6
    trace, _ = join([("a", trace), ("a", telemetry)])
    assert {other.witness for other in trace.others if other.trusted} == {source}


@pytest.mark.parametrize(("regime", "named"), [("interruption", True), ("input", False)])
def test_interruptions_outside_the_recorded_steps_are_findings_of_the_trace_too(regime, named):
    seen, said = verdict_of("trace", "launch", 0.5, "critical", "high"), monitored(100, "checkpointing")
    said.verdict.severity, said.findings[0].regime = "none", regime
    trace, _ = join([("a", seen), ("a", said)])
    assert {other.witness for other in trace.others if other.trusted} == {"trace"}
    assert [finding.cause for finding in trace.findings] == ["checkpointing"] * named


@pytest.mark.parametrize(("severity", "kept"), [("none", 1), ("warning", 0)])
def test_headroom_is_that_of_a_training_without_a_problem(severity, kept):
    """The trace alone found no problem, so its report has headroom; the telemetry leads, and may have found one."""
    trace = verdict_of("trace", "compute", 0.9, "none", "high")
    trace.headroom.add(kind="more_devices")
    telemetry = verdict_of("telemetry", "interruption", 0.4, severity, "high", interruption="fires", compute="clear")
    both, _ = join([(".", trace), (".", telemetry)])
    assert both.verdict.severity == severity
    assert len(both.headroom) == kept


def test_a_trace_of_slower_steps_does_not_decide():
    """Its steps belong to a part of the run that is over, as those before it do, or were disturbed."""
    trace, telemetry = report_of("trace", 70, input=0.9), report_of("telemetry", 10, input=0.04)
    trace.verdict.severity, telemetry.verdict.regime, telemetry.verdict.severity = "critical", "compute", "none"
    telemetry.window.step_ns.mean = telemetry.window.step_ns.median
    for recorded, before, slower in ((70e6, 70e6, True), (70e6, 11e6, True), (20e6, 11e6, False)):
        trace.window.step_ns.mean, trace.unprofiled.step_ns = recorded, before
        joined, _ = join([("a", trace), ("a", telemetry)])
        (trusted,) = (other for other in joined.others if other.trusted)
        assert ("slower than those of the run" in trusted.because) == slower
        assert trusted.witness == "telemetry" or not slower


def test_a_trace_of_slower_steps_is_better_than_nothing():
    trace, telemetry = report_of("trace", 70, launch=0.9), report_of("telemetry", 10, unexplained=0.9)
    trace.verdict.severity, trace.verdict.confidence = "critical", "high"
    telemetry.verdict.regime, telemetry.verdict.severity = "unexplained", "none"
    telemetry.window.step_ns.mean, trace.window.step_ns.mean, trace.unprofiled.step_ns = 10e6, 70e6, 70e6
    for report in join([("a", trace), ("a", telemetry)]):
        assert (report.verdict.severity, report.verdict.confidence) == ("critical", "low")


@pytest.mark.parametrize(
    ("in_trace", "step_ms", "source"), [(0.01, 10, "trace"), (0.6, 10, "telemetry"), (0.01, 7, "telemetry")]
)
def test_operators_outside_of_modules_are_no_python(in_trace, step_ms, source):
    """Telemetry sees only that no module runs. The trace decides if its steps are as long as those of the run."""
    trace, telemetry = report_of("trace", step_ms, compute=0.9, host=in_trace), report_of("telemetry", 10, host=0.7)
    trace.unprofiled.step_ns = trace.window.step_ns.median
    for report in (trace, telemetry):
        report.window.step_ns.mean = report.window.step_ns.median
    trace.verdict.regime, telemetry.verdict.regime = "compute", "host"
    telemetry.verdict.share, telemetry.verdict.severity = 0.7, "critical"
    trust = trust_of(trace, telemetry)
    assert trust.source == source
    assert ("does not tell Python from operators" in trust.because) == (source == "trace")


def test_frames_tell_what_the_training_thread_waits_for():
    """Idle workers look like slow storage to telemetry, which does not see the sampler in the training process."""
    trace, telemetry = report_of("trace", 100, input=0.9), report_of("telemetry", 100, input=0.9)
    for report, cause in ((trace, "slow_sampler"), (telemetry, "slow_storage")):
        finding = report.findings.add(cause=cause, regime="input", cost_share=0.9)
        finding.evidence.add(label=cause, begin_ns=5)
        finding.fix.action = cause
        report.verdict.severity, report.verdict.headline = "critical", f"headline of {cause}"
    for report in join([("a", trace), ("a", telemetry)]):
        assert [finding.cause for finding in report.findings] == ["slow_sampler"]
        assert report.verdict.headline == "headline of slow_sampler"
        assert [other.witness for other in report.others if other.trusted] == ["trace"]


def test_a_list_trusts_the_same_source_as_the_reports():
    trace, telemetry = report_of("trace", 70, input=0.9), report_of("telemetry", 10, input=0.04)
    for report in (trace, telemetry):
        report.window.step_ns.mean = report.window.step_ns.median
    trace.unprofiled.step_ns = 70e6
    telemetry.findings.add(cause="growing_steps", regime="compute", cost_share=0.4)
    whole, brief = trust_of(trace, telemetry), trust_of(Digest.of(trace).brief, Digest.of(telemetry).brief)
    assert whole == brief
    assert "slower than those of the run" in brief.because
