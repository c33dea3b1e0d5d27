"""What was not recorded is named, and never taken for zero; steps that were left out, and pauses between them."""

from dataclasses import replace

import pytest
from diagnosis.judged_runs import BLIND_ON_CPU, ON_CPU, judged, share_of, status_of
from helpers.simulated_telemetry import FACTS, STEADY, SimulatedPhase, simulate
from helpers.telemetry_files import NAME, write
from helpers.telemetry_problems import simulated_phase

from tb_bottleneck.diagnosis.telemetry import TelemetryReader, diagnose_telemetry, judge_telemetry
from tb_bottleneck.schema.signals import ENDED
from tb_bottleneck.text.report import render

MISSING = {
    "host": ("forward", "forward was not recorded"),
    "launch": ("forward", "forward was not recorded"),
    "input": ("loader_wait", "loader_wait was not recorded"),
    "transfer": ("transfer", "transfer was not recorded"),
    "allocator": ("device_allocations", "device_allocations was not recorded"),
}


@pytest.mark.parametrize("regime", MISSING)
def test_a_missing_signal_is_named_and_never_zero(regime):
    signal, because = MISSING[regime]
    verdict = status_of(judged(simulated_phase("healthy"), without=(signal,)), regime)
    assert verdict.status == "abstains"
    assert because in verdict.because


def test_without_utilisation_gaps_inside_the_step_are_not_seen():
    report = judged(simulated_phase("launches"), without=("gpu_utilisation",))
    assert status_of(report, "launch").status == "abstains"
    assert "gpu_utilisation" in status_of(report, "launch").because


def test_without_counters_and_power_what_bounds_the_device_is_not_guessed():
    blind = ("dram_activity", "tensor_activity", "fp32_activity", "sm_activity", "power", "memory_utilisation")
    report = judged(simulated_phase("healthy"), without=blind)
    assert (report.verdict.regime, report.verdict.severity, report.verdict.confidence) == ("unexplained", "none", "low")
    assert "does not show what limits it" in report.verdict.headline
    for regime in ("memory", "compute", "underfilled"):
        assert status_of(report, regime).status == "abstains"


def test_without_steps_an_idle_device_is_seen_and_its_reason_is_not_guessed():
    report = judged(simulated_phase("few_workers"), without=("steps",))
    assert report.health.reasons[0].code == "no_step_clock"
    assert status_of(report, "input").status == "abstains"
    assert [finding.cause for finding in report.findings] == ["idle_without_steps"]
    assert report.verdict.regime == "unexplained"


@pytest.mark.parametrize(
    ("without", "timed"),
    [((), "forward, backward, optimizer"), (("forward",), "backward, optimizer; not timed: forward")],
)
def test_phases_that_were_not_timed_are_not_among_those_that_were(without, timed):
    """Host time of backward and optimizer was called that of forward, too, and Python outside torch torch's."""
    report = judged(simulated_phase("waits"), without=without)
    assert report.findings[0].cause == "waits_or_launches"
    rows = {row.label: row.text for row in report.findings[0].evidence}
    assert rows["Timed phases of the step"] == timed
    assert not any("forward" in label for label in rows)
    assert "while torch runs" not in report.verdict.headline


NOT_TIMED = ("loader_wait", "transfer", "forward")


@pytest.mark.parametrize("cores", [1.0, 15.5], ids=["one core", "all cores"])
def test_a_cpu_is_not_said_to_work_if_that_was_not_recorded(cores):
    """Runs that lost half of their time were told that the CPU works, and that no problem costs more than a tenth: all
    cores are busy, too, if a thread writes logs."""
    made = SimulatedPhase(device=None, dispatch=200.0, readings={"process_cores": cores})
    report = judged(made, facts=ON_CPU, without=(*BLIND_ON_CPU, *NOT_TIMED))
    assert (report.verdict.regime, report.verdict.severity, report.verdict.confidence) == ("unexplained", "none", "low")
    assert "no problem" not in report.verdict.headline
    assert "is busy" not in report.verdict.headline
    assert report.verdict.title == "Inside the step"
    assert "It is not known what would save time" in render(report)
    verdict = status_of(report, "interruption")
    assert verdict.status == "abstains"
    assert "not recorded: loader_wait, forward" in verdict.because


@pytest.mark.parametrize("without", [(), NOT_TIMED], ids=["timed", "not timed"])
@pytest.mark.parametrize(("every", "pause"), [(2, 400.0), (3, 500.0), (20, 2000.0)])
def test_checkpoints_of_a_cpu_run_are_interruptions_even_every_second_step(every, pause, without):
    """Half of the steps are long, so the median step is a long one: the interruptions were called clear."""
    made = SimulatedPhase(device=None, dispatch=200.0, pause_every=every, pause=pause)
    report = judged(made, facts=ON_CPU, without=(*BLIND_ON_CPU, *without))
    assert report.verdict.regime == "interruption"
    assert [finding.cause for finding in report.findings] == ["periodic_pauses"]
    assert share_of(report, "interruption") == pytest.approx(pause / every / (202 + pause / every), abs=0.04)
    assert f"every {every} steps" in [row.text for row in report.findings[0].evidence]


@pytest.mark.parametrize(
    ("column", "cause"),
    [
        ("checkpoint", "checkpointing"),
        ("logging", "logging"),
        ("garbage_collection", "garbage_collection"),
        ("evaluation", "evaluation"),
    ],
)
@pytest.mark.parametrize("device", [STEADY, None], ids=["on a device", "on the CPU"])
def test_an_interruption_in_every_step_is_named(column, cause, device):
    """No step is longer than another one, so only its recorded time shows it: it was called clear, or Python."""
    made = SimulatedPhase(device=device, dispatch=40.0 if device else 200.0, interrupted={column: 80.0})
    report = judged(made, facts=FACTS if device else ON_CPU, without=() if device else BLIND_ON_CPU)
    assert (report.verdict.regime, report.findings[0].cause) == ("interruption", cause)
    assert report.findings[0].cost_share == pytest.approx(80 / (180 if device else 282), abs=0.05)
    assert "torch.save" not in report.findings[0].fix.code or cause == "checkpointing"


def test_pauses_of_unknown_kind_remain_beside_a_known_one():
    made = replace(simulated_phase("paused"), interrupted={"checkpoint": 20.0})
    assert {finding.cause for finding in judged(made).findings} == {"checkpointing", "periodic_pauses"}
    assert "torch.save" not in judged(simulated_phase("paused")).findings[0].fix.code


def test_profiled_steps_are_left_out_of_the_step_time():
    messages = simulate([simulated_phase("healthy")])
    for packet in messages[4:6]:
        for column in packet.steps.columns:
            if column.name == "profiled":
                column.values[:] = [1.0] * len(column.values)
        packet.steps.wall_ns[:] = [wall * 3 for wall in packet.steps.wall_ns]
    reader = TelemetryReader("/no/such/file")
    reader.telemetry.add(messages)
    assert judge_telemetry(reader).window.step_ns.p90 < 110e6


def test_too_little_gets_no_verdict(tmp_path):
    report = diagnose_telemetry(str(write(tmp_path / NAME, simulate([]))))
    assert report.health.status == "incomplete"
    assert report.health.reasons[0].code == "insufficient_telemetry"
    assert not report.HasField("verdict")


def test_a_training_that_ended_before_its_second_step_is_not_reported_as_waiting():
    """A script that failed immediately got the text that the verdict follows after the first steps."""
    reader = TelemetryReader("/no/such/file")
    messages = simulate([])
    messages[-1].notes.add(code=ENDED)
    reader.telemetry.add(messages)
    (reason,) = judge_telemetry(reader).health.reasons
    assert reason.code == "ended_without_steps"
    assert "monitor.step()" in reason.fix
