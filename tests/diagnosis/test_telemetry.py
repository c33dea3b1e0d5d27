"""Diagnosis of telemetry from end to end: the event file of a simulated training with known problems."""

from dataclasses import replace

import numpy as np
import pytest
from diagnosis.judged_runs import judged, share_of, status_of
from helpers.simulated_telemetry import HOST, SimulatedPhase, simulate
from helpers.telemetry_files import NAME, write
from helpers.telemetry_problems import HARD_NEGATIVES, PROBLEMS, TRUTH, simulated_phase

from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.diagnosis.telemetry import TelemetryReader, diagnose_telemetry, judge_telemetry
from tb_bottleneck.report.json_form import as_json
from tb_bottleneck.schema.telemetry_pb2 import Packet
from tb_bottleneck.text.report import render

RANDOM_RUNS = 160
IDLE_PROBLEMS = (
    "few_workers",
    "in_process",
    "storage",
    "saturated",
    "copies",
    "launches",
    "python",
    "emptied",
    "paused",
)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_problem_is_reported_with_its_cause(problem):
    report = judged(simulated_phase(problem))
    regime, cause = TRUTH[problem]
    assert report.verdict.regime == regime
    assert cause in [finding.cause for finding in report.findings] or (cause is None and not report.findings)
    assert sum(row.share for row in report.account) == pytest.approx(1.0, abs=1e-9)
    assert report.verdict.confidence in ("medium", "low")


@pytest.mark.parametrize("problem", IDLE_PROBLEMS)
@pytest.mark.parametrize("severity", [0.15, 0.4, 0.7])
def test_the_account_is_right_by_a_few_points(problem, severity):
    report = judged(simulated_phase(problem, severity=severity))
    assert share_of(report, TRUTH[problem][0]) == pytest.approx(severity, abs=0.04)


def test_a_device_that_is_not_filled_is_not_a_healthy_run():
    """The report said that nothing would save a tenth of the time, above a finding with 82 % at stake."""
    report = judged(simulated_phase("underfilled"), without=("sm_activity",))
    assert report.findings[0].cost_share > 0.5
    assert report.verdict.severity == "info"
    assert "does not show whether a tenth of the time can be saved" in " ".join(render(report).split())
    assert "no problem" not in report.verdict.headline


def test_sm_activity_bounds_what_a_larger_batch_saves():
    """19 % of the multiprocessors have work: the rest of the underfilled time, 59 % of all, is unused."""
    report = judged(simulated_phase("underfilled"))
    (finding,) = report.findings
    used = next(row.value for row in finding.evidence if row.label == "Multiprocessors with work")
    assert (report.verdict.severity, finding.speedup.basis) == ("critical", "bound")
    assert finding.speedup.high == pytest.approx(1 / (1 - (1 - used) * finding.cost_share))
    many = replace(
        simulated_phase("underfilled"), readings={**simulated_phase("underfilled").readings, "sm_activity": 0.9}
    )
    assert not judged(many).findings, "the multiprocessors are full: the kernels are slow, not small"


@pytest.mark.parametrize("problem", IDLE_PROBLEMS)
def test_a_healthy_run_gets_no_finding(problem):
    report = judged(simulated_phase("healthy"))
    assert report.verdict.severity == "none"
    assert status_of(report, TRUTH[problem][0]).status == "clear"


@pytest.mark.parametrize("negative", HARD_NEGATIVES)
def test_a_hard_negative_gets_no_finding(negative):
    report = judged(HARD_NEGATIVES[negative])
    assert report.verdict.severity == "none"
    assert not report.findings


def scaled(made: SimulatedPhase, factor: float) -> SimulatedPhase:
    """Returns the same training with steps that are longer by this factor."""
    times = {name: getattr(made, name) * factor for name in ("dispatch", "load", "copy", "python", "inside", "pause")}
    return replace(made, device=None if made.device is None else made.device * factor, **times)


def random_run(rng: np.random.Generator) -> tuple[str, SimulatedPhase, tuple[str, ...]]:
    """Returns a problem (or "healthy" for a hard negative), its phase, and two signals that are not recorded."""
    seconds, factor = float(rng.uniform(60, 120)), float(rng.uniform(0.2, 4.0))
    if rng.random() < 0.25:
        problem, made = "healthy", replace(HARD_NEGATIVES[str(rng.choice(list(HARD_NEGATIVES)))], seconds=seconds)
    else:
        problem = str(rng.choice(list(PROBLEMS)))
        made = simulated_phase(problem, seconds, severity=float(rng.uniform(0.13, 0.7)))
    needed = {"quota_throttled_total", "worker_count", "worker_cores", "io_pressure", "cpu_busy_cores", "process_cores"}
    spare = sorted({"temperature", "samples", "power_limit_default", *HOST} - needed)
    without = tuple(str(name) for name in rng.choice(spare, size=2, replace=False))
    return problem, scaled(made, factor), without


@pytest.mark.nightly
def test_random_runs_get_the_right_verdict(capsys):
    """Computes precision and recall over random problems, hard negatives, severities, step times and lengths.

    Run with -s to print them.
    """
    rng = np.random.default_rng(7)
    results: list[tuple[str, str, bool]] = []
    for run in range(RANDOM_RUNS):
        problem, made, without = random_run(rng)
        report = judged(made, seed=run, without=without)
        regime, cause = TRUTH[problem]
        causes = [finding.cause for finding in report.findings]
        results.append((regime, report.verdict.regime, cause in causes if cause else not causes))
    lines, recalls, precisions = [], [], []
    for regime in sorted({truth for truth, _, _ in results}):
        hits = sum(truth == answer == regime for truth, answer, _ in results)
        recalls.append(hits / sum(truth == regime for truth, _, _ in results))
        precisions.append(hits / max(sum(answer == regime for _, answer, _ in results), 1))
        lines.append(f"{regime:13} recall {recalls[-1]:.2f}  precision {precisions[-1]:.2f}")
    causes_right = sum(right for *_, right in results) / len(results)
    print("\n" + "\n".join(lines), f"\ncauses right in {causes_right:.3f} of {len(results)} runs")
    assert min(recalls) >= 0.9
    assert min(precisions) >= 0.9
    assert causes_right >= 0.95


@pytest.mark.parametrize(
    ("loader", "model", "regime"),
    [(1.0, 100.0, "compute"), (1.0, 400.0, "compute"), (300.0, 100.0, "input"), (300.0, 800.0, "input")],
    ids=["simple data, small model", "simple data, large model", "complex, small", "complex, large"],
)
def test_small_and_large_models_on_simple_and_complex_data(loader, model, regime):
    assert judged(SimulatedPhase(load=loader, device=model)).verdict.regime == regime


def test_an_internal_error_costs_one_report_and_is_reported(tmp_path, monkeypatch, caplog):
    path = write(tmp_path / NAME, simulate([simulated_phase("healthy", 20.0)]))

    def broken(_):
        raise ZeroDivisionError("planted")

    for place in ("tb_bottleneck.diagnosis.telemetry.judge_all", "tb_bottleneck.telemetry.telemetry.Telemetry.add"):
        with monkeypatch.context() as patch:
            patch.setattr(place, lambda *_: broken(None))
            report = diagnose_telemetry(str(path))
        assert [reason.code for reason in report.health.reasons] == ["broken"]
        assert "planted" in report.health.reasons[0].detail
    assert "could not be judged" in caplog.text


def test_a_file_that_is_gone_is_an_unreadable_report():
    report = diagnose_telemetry("/no/such/file")
    assert (report.health.status, report.evidence_source) == ("unreadable", "telemetry")


def test_lost_packets_degrade_the_report():
    messages = simulate([simulated_phase("healthy")])
    del messages[5]
    reader = TelemetryReader("/no/such/file")
    reader.telemetry.add(messages)
    report = judge_telemetry(reader)
    assert [reason.code for reason in report.health.reasons] == ["packets_lost"]
    assert (report.health.status, report.verdict.confidence) == ("degraded", "low")


def test_the_verdict_of_a_live_run_is_about_its_last_phase():
    """After a phase of waiting for data, the verdict of the whole run named the wait from then on."""
    healthy, waiting = simulated_phase("healthy", 60.0), simulated_phase("storage", 60.0, severity=0.5)
    results = []
    for parts in ([healthy], [healthy, waiting], [healthy, waiting, healthy]):
        reader = TelemetryReader("/no/such/file")
        reader.telemetry.add(simulate(parts))
        latest, whole = (judge_telemetry(reader, latest=one) for one in (True, False))
        assert [band.regime for band in latest.phases] == [band.regime for band in whole.phases]
        results.append((latest.verdict, whole.verdict, latest.window))
    assert [latest.regime for latest, _, _ in results] == ["compute", "input", "compute"]
    assert [whole.regime for _, whole, _ in results] == ["compute", "input", "input"]
    waiting_now, waiting_in_all, window = results[1]
    assert waiting_now.share == pytest.approx(0.5, abs=0.06)
    assert waiting_in_all.share < 0.3
    assert window.end_ns - window.begin_ns == pytest.approx(60e9, rel=0.2)
    assert results[0][0].headline == results[0][1].headline, "a run with one phase has one headline"
    assert waiting_now.headline.startswith("In the last 60 s: ")


def test_an_unknown_device_bound_does_not_lower_the_confidence_in_a_measured_wait():
    blind = ("dram_activity", "tensor_activity", "fp32_activity", "sm_activity", "power", "memory_utilisation")
    report = judged(simulated_phase("storage"), without=blind)
    assert share_of(report, "unexplained") > 0.25
    assert (report.verdict.regime, report.verdict.confidence) == ("input", "medium")


def test_a_device_that_works_is_not_called_unexplained():
    blind = ("dram_activity", "tensor_activity", "fp32_activity", "sm_activity", "power", "memory_utilisation")
    healthy, puzzling = (
        judged(simulated_phase("healthy"), without=blind),
        judged(simulated_phase("few_workers"), without=("steps",)),
    )
    assert {band.title for band in healthy.phases} == {healthy.verdict.title} == {"Busy"}
    row = next(row for row in healthy.account if row.regime == "unexplained")
    assert row.title == "Busy"
    assert row.meaning.startswith("The GPU is busy.")
    assert status_of(healthy, "unexplained").status == "abstains", (
        "what limits a busy device is not known, and no problem"
    )
    assert puzzling.verdict.title == "Unexplained"
    assert status_of(puzzling, "unexplained").status == "fires"
    assert judged(simulated_phase("hot")).verdict.title == "Compute, slowed down"
    assert judged(simulated_phase("healthy")).verdict.title == "Compute"


def test_the_report_is_complete_and_its_text_names_the_phases(tmp_path):
    path = write(
        tmp_path / NAME, simulate([simulated_phase("healthy"), simulated_phase("storage"), simulated_phase("healthy")])
    )
    report = diagnose_telemetry(str(path), run="mine")
    assert (report.run, report.source, report.evidence_source, report.rank) == ("mine", NAME, "telemetry", 0)
    assert [row.regime for row in report.account] == list(REGIMES)
    assert [verdict.regime for verdict in report.regimes] == list(REGIMES)
    as_json(report)
    text = " ".join(render(report).split())
    assert "the loader waits for storage, the network or a lock" in text
    assert "timed by the monitor" in text
    assert "2:00 to 4:00 Waiting for data 40 % critical" in text


@pytest.mark.parametrize(("function", "part"), [("worker_processes_needed", "input"), ("worker_places", "places")])
def test_a_part_that_fails_costs_only_that_part(tmp_path, monkeypatch, function, part):
    path = write(tmp_path / NAME, simulate([simulated_phase("healthy", 20.0)]))
    monkeypatch.setattr(f"tb_bottleneck.diagnosis.telemetry.{function}", lambda *_: 1 / 0)
    report = diagnose_telemetry(str(path))
    assert report.HasField("verdict")
    assert [broken.part for broken in report.broken_parts] == [part]


def with_readings(problem: str, **readings: float) -> SimulatedPhase:
    phase = simulated_phase(problem)
    return replace(phase, readings={**phase.readings, **readings})


@pytest.mark.parametrize(("tensors", "regime"), [(0.0, "gpu_unused"), (5e8, "launch")])
def test_a_device_with_tensors_is_not_unused(tensors, regime):
    """A fast device with a small model may work for less than 2 % of the time."""
    reader = TelemetryReader("/no/such/file")
    for message in simulate([simulated_phase("on_cpu")], 0):
        if isinstance(message, Packet):
            message.steps.columns.add(name="memory_allocated", values=[tensors] * len(message.steps.wall_ns))
        reader.telemetry.add([message])
    assert judge_telemetry(reader).verdict.regime == regime


def test_products_in_fp32_are_named_by_the_units_in_use():
    report = judged(with_readings("healthy", fp32_activity=0.64, tensor_activity=0.02, dram_activity=0.1))
    assert [finding.cause for finding in report.findings] == ["fp32_matmul"]
    assert "fp32 units" in report.verdict.headline
    usual = judged(with_readings("healthy", fp32_activity=0.05, tensor_activity=0.6, dram_activity=0.1))
    assert "fp32_matmul" not in [finding.cause for finding in usual.findings]


def test_slow_kernels_on_full_multiprocessors_are_not_small():
    """As with misaligned shapes: 95 % of the multiprocessors have work, the tensor cores a quarter of their peak."""
    report = judged(with_readings("healthy", sm_activity=0.95, tensor_activity=0.27, dram_activity=0.09))
    assert report.verdict.regime == "compute"
    assert share_of(report, "compute") > 0.6
    assert share_of(report, "underfilled") < 0.1
