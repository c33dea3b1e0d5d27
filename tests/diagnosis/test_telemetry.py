"""Diagnosis of telemetry from end to end: the event file of a simulated training with known problems."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import simulated_telemetry
from helpers.simulated_telemetry import (
    FACTS,
    HARD_NEGATIVES,
    HEALTHY,
    HOST,
    PROBLEMS,
    STEADY,
    TRUTH,
    SimulatedPhase,
    simulate,
    simulated_phase,
)
from helpers.telemetry_files import NAME, write

from tb_bottleneck.diagnosis.telemetry import TelemetryReader, diagnose_telemetry, judge_telemetry
from tb_bottleneck.regime import REGIMES
from tb_bottleneck.report.rendering.json_form import as_json
from tb_bottleneck.report.rendering.text import render
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.schema.signals import ENDED

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


def judged(*phases: SimulatedPhase, seed: int = 0, facts=None, without=()) -> pb.Report:
    reader = TelemetryReader("/no/such/file")
    reader.telemetry.add(simulate(phases, seed, facts, without))
    return judge_telemetry(reader)


def status_of(report: pb.Report, regime: str) -> pb.RegimeVerdict:
    return next(verdict for verdict in report.regimes if verdict.regime == regime)


def share_of(report: pb.Report, regime: str) -> float:
    return next(row.share for row in report.account if row.regime == regime)


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
    report = judged(simulated_phase("underfilled"))
    assert report.findings[0].cost_share > 0.5
    assert report.verdict.severity == "info"
    assert "does not show whether a tenth of the time can be saved" in " ".join(render(report).split())
    assert "no problem" not in report.verdict.headline


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


def test_an_idle_device_is_not_throttled_and_a_normal_power_cap_is_no_problem():
    idle_clocks = SimulatedPhase(load=300.0, readings={"clock_event_reasons": 1.0, "sm_clock": 0.3e9})
    assert "thermal_throttle" not in [finding.cause for finding in judged(idle_clocks).findings]
    capped = SimulatedPhase(readings={"clock_event_reasons": 4.0, "sm_clock": 1.85e9, "power": 699.0})
    assert judged(capped).verdict.severity == "none"


SLOT_3 = {"pcie_generation": 3.0, "pcie_generation_max": 3.0, "pcie_width": 8.0, "pcie_width_max": 8.0}


@pytest.mark.parametrize(
    ("gpu_max", "cause", "speed"),
    [
        (4.0, "slow_slot", "generation 3 x8, the limit of this slot; the device supports generation 4"),
        (3.0, "exposed_copies", "generation 3 x8, the highest of this device in this slot"),
    ],
)
def test_a_link_at_the_limit_of_its_slot_is_not_told_that_it_could_be_what_it_is(gpu_max, cause, speed):
    """A card of generation 4 in a slot of generation 3 was told that its link could be generation 3 x8."""
    readings = SLOT_3 | {"pcie_generation_gpu_max": gpu_max, "pcie_received": 6e9}
    report = judged(replace(simulated_phase("copies"), readings=readings))
    assert "degraded_link" not in [finding.cause for finding in report.findings]
    assert cause in [finding.cause for finding in report.findings]
    assert speed in [row.text for finding in report.findings for row in finding.evidence]


RESTARTED = {"workers": 4, "persistent_workers": False, "worker_start": "spawn"}


@pytest.mark.parametrize(
    ("facts", "epoch", "cause"),
    [
        (RESTARTED, 12, "restarted_workers"),
        (RESTARTED | {"persistent_workers": True}, 12, "too_few_workers"),
        (RESTARTED, 4, "too_few_workers"),  # one long wait in each round of four workers
        ({}, 12, "too_few_workers"),
    ],
    ids=["each epoch starts workers", "they persist", "bursts", "not recorded"],
)
def test_workers_that_each_epoch_starts_anew_need_no_further_workers(facts, epoch, cause):
    """With spawn, the first batch of an epoch waits for its workers' imports: more workers make that longer."""
    without = ("epoch_start",) if epoch == 4 else ()
    report = judged(SimulatedPhase(epoch=epoch, first_load=250.0 * epoch / 4), facts=FACTS | facts, without=without)
    assert report.verdict.regime == "input"
    assert report.findings[0].cause == cause
    if cause == "restarted_workers":
        assert "num_workers=4, persistent_workers=True" in report.findings[0].fix.code
        assert report.findings[0].cost_share == pytest.approx(share_of(report, "input"), abs=0.05)
        assert "by spawn, in each epoch anew" in [row.text for row in report.findings[0].evidence]


def test_two_workers_on_two_busy_cores_are_not_told_to_be_four():
    readings = {"cpu_usable_cores": 2.0, "cpu_busy_cores": 2.0, "worker_count": 2.0, "worker_cores": 1.0}
    made = replace(simulated_phase("few_workers"), readings=readings)
    report = judged(made, facts=FACTS | {"workers": 2, "cores": 2})
    assert report.findings[0].cause == "too_few_cores"


@pytest.mark.parametrize(("wait", "leads"), [(0.8, "contended_cores"), (0.4, "too_few_workers"), (0.0, None)])
def test_the_load_of_other_processes_is_not_blamed_on_the_loader(wait, leads, monkeypatch):
    """All cores are busy, most of them for others: free cores would save the workers' wait for one."""
    monkeypatch.setattr(simulated_telemetry, "HOST", HOST | {"worker_core_wait": 0.0})
    workers = {"worker_count": 2.0, "worker_cores": 2 * (1 - wait) * 0.9, "worker_core_wait": 2 * wait * 0.9}
    readings = {"cpu_usable_cores": 4.0, "cpu_busy_cores": 4.0, "process_cores": 0.2} | workers
    facts = FACTS | {"workers": 2, "cores": 4}
    report = judged(replace(simulated_phase("few_workers"), readings=readings), facts=facts)
    costs = {finding.cause: finding.cost_share for finding in report.findings}
    if leads is None:
        assert "contended_cores" not in costs
        return
    assert max(costs, key=costs.get) == leads
    assert costs["contended_cores"] == pytest.approx(wait * share_of(report, "input"), rel=0.02)
    assert sum(costs.values()) == pytest.approx(share_of(report, "input"), rel=0.02)


def test_a_link_is_judged_under_load_only():
    slow_while_idle = SimulatedPhase(device=5.0, load=300.0, readings={"pcie_generation": 1.0})
    assert "degraded_link" not in [finding.cause for finding in judged(slow_while_idle).findings]


ON_CPU = {**FACTS, "device_kind": "cpu", "torch_threads": 16}


@pytest.mark.parametrize(
    ("facts", "readings", "cause"),
    [
        ({"torch_threads": 64}, {}, "oversubscribed_threads"),
        ({"torch_threads": 8, "local_world_size": 4}, {}, "oversubscribed_threads"),
        ({}, {"quota_throttled_total": 4e9}, "cpu_quota"),
        ({}, {"cpu_pressure": 0.6, "run_queue": 40.0}, "contended_cores"),
        ({"blas_pools": [{"api": "blas", "library": "netlib"}]}, {}, "slow_blas"),
        ({"blas_pools": [{"api": "blas", "library": "openblas"}]}, {}, None),
    ],
    ids=["threads", "processes x threads", "quota", "contended cores", "reference BLAS", "healthy"],
)
def test_on_a_cpu_run_too_few_cores_and_a_slow_library_are_named(facts, readings, cause):
    made = SimulatedPhase(device=None, dispatch=200.0, readings=readings)
    report = judged(made, facts={**ON_CPU, **facts}, without=(*HEALTHY, "gpu_utilisation"))
    assert report.device.kind == "cpu"
    assert [finding.cause for finding in report.findings] == ([cause] if cause else [])
    assert report.verdict.regime == ("compute" if cause else "unexplained")


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


BLIND_ON_CPU = (*HEALTHY, "gpu_utilisation", "device_busy")
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
    assert report.verdict.title == "Unexplained"
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


LAZY = {"worker_count": 1.0, "worker_cores": 0.15, "io_pressure": 0.0}


@pytest.mark.parametrize(
    ("readings", "cause"),
    [
        (LAZY | {"worker_core_wait": 0.05}, "slow_storage"),
        (LAZY | {"worker_core_wait": 0.70}, "too_few_workers"),
        (LAZY | {"worker_cores": 0.9, "worker_core_wait": 0.05}, "too_few_workers"),
        (LAZY, "slow_storage"),  # recorded before, on a machine without pressure on the cores
        (LAZY | {"cpu_pressure": 0.5}, "too_few_workers"),
        (LAZY | {"cpu_busy_cores": 15.9}, "too_few_workers"),
    ],
    ids=["waits", "waits for a core", "computes", "not counted", "not counted, pressure", "not counted, busy cores"],
)
def test_a_worker_that_neither_runs_nor_waits_for_a_core_waits_for_the_storage(readings, cause, monkeypatch):
    """Its pauses of a millisecond per file showed in no counter of the machine: more workers were advised."""
    if "worker_core_wait" in readings:
        monkeypatch.setattr(simulated_telemetry, "HOST", HOST | {"worker_core_wait": 0.0})
    made = replace(simulated_phase("few_workers"), readings=readings)
    assert judged(made, facts=FACTS | {"workers": 1}).findings[0].cause == cause


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("rotational", "local SSD"),
        ("network", "local SSD"),
        ("ssd", "large shards"),
        ("memory", "locks"),
        (7, "shards"),
    ],
)
def test_the_fix_of_slow_storage_fits_the_storage(kind, says):
    facts = FACTS | {"workers": 1, "dataset_storage": kind, "dataset_filesystem": "ext4"}
    code = judged(replace(simulated_phase("few_workers"), readings=LAZY), facts=facts).findings[0].fix.code
    assert says in code
    assert ("SSD" in code) == (kind not in ("ssd", "memory"))


@pytest.mark.parametrize(("pins", "advised"), [(True, False), (False, True), (None, True)])
def test_pinning_is_advised_only_where_the_loader_does_not_pin(pins, advised):
    facts = FACTS if pins is None else FACTS | {"pin_memory": pins}
    finding = judged(simulated_phase("copies"), facts=facts).findings[0]
    assert finding.cause == "exposed_copies"
    assert ("pin_memory=True" in finding.fix.code) == advised
    assert "non_blocking=True" in finding.fix.code


WAITING_THREADS = {"cpu_pressure": 0.6, "run_queue": 40.0, "core_wait_total": 0.4e9}


@pytest.mark.parametrize(
    ("threads", "cause"), [(64, "oversubscribed_threads"), (8, "contended_cores")], ids=["own threads", "others"]
)
def test_threads_on_a_gpu_run_are_the_cause_if_they_outnumber_the_cores(threads, cause, monkeypatch):
    monkeypatch.setattr(simulated_telemetry, "HOST", HOST | {"core_wait_total": 0.0})
    made = replace(simulated_phase("launches"), readings=WAITING_THREADS)
    report = judged(made, facts=FACTS | {"torch_threads": threads})
    found = {finding.cause: finding.fix.code for finding in report.findings}
    assert found.keys() == {"small_kernels", cause}
    assert "torch.set_num_threads(16)" in found[cause] or cause == "contended_cores"


@pytest.mark.parametrize(("waited", "python"), [(0.3e9, True), (0.9e9, False)])
def test_on_a_crowded_machine_python_is_a_cause_of_what_is_no_wait_for_a_core(waited, python, monkeypatch):
    monkeypatch.setattr(simulated_telemetry, "HOST", HOST | {"core_wait_total": 0.0})
    made = replace(simulated_phase("python"), readings=WAITING_THREADS | {"core_wait_total": waited})
    found = {finding.cause: finding.cost_share for finding in judged(made).findings}
    assert found.keys() == {"contended_cores", *(["host_python"] if python else [])}
    assert found.get("host_python", 0.28) == pytest.approx(0.4 * 0.7, abs=0.03)


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({"device_capability": "12.0", "torch_architectures": ["sm_80", "sm_90a", "compute_90"]}, True),
        ({"device_capability": "8.9", "torch_architectures": ["sm_80", "sm_86"]}, False),
        ({"device_capability": "9.0", "torch_architectures": ["sm_100", "nonsense", 3]}, False),
        ({"device_capability": "x", "torch_architectures": ["sm_80"]}, False),
        ({"device_capability": "12.0", "torch_architectures": "sm_80"}, False),
    ],
)
def test_a_device_newer_than_torch_is_named(facts, found):
    report = judged(SimulatedPhase(), facts=FACTS | facts)
    assert ("torch_too_old" in [finding.cause for finding in report.findings]) == found
    assert report.verdict.severity == "none", "what it costs is not known"


@pytest.mark.parametrize(
    ("name", "blas", "found"),
    [("Intel(R) Xeon(R) Gold", "open", True), ("Intel(R) Xeon(R)", "mkl", False), ("AMD EPYC", "open", False)],
)
def test_openblas_on_intel_is_named(name, blas, found):
    made = SimulatedPhase(device=None, dispatch=200.0)
    report = judged(made, facts=ON_CPU | {"device_name": name, "torch_blas": blas}, without=BLIND_ON_CPU)
    assert [finding.cause for finding in report.findings] == (["openblas_on_intel"] if found else [])


CROWDED = {"cpu_pressure": 0.8, "run_queue": 70.0}


@pytest.mark.parametrize(
    ("readings", "named"),
    [
        ({"process_cores": 0.2}, False),  # 0.2 cores x 4.4 threads per core: it sleeps
        ({"process_cores": 0.24}, True),  # it gets its share of the cores, and no more
        ({"process_cores": 15.9}, False),  # the queue is its own threads
        ({"process_cores": 0.24, "core_wait_total": 0.02e9}, False),
        ({"process_cores": 0.2, "core_wait_total": 0.5e9}, True),
    ],
    ids=["sleeps", "always runnable", "has the cores", "counted: hardly waits", "counted: waits"],
)
@pytest.mark.parametrize("without", [(), ("loader_wait", "forward")], ids=["timed", "no loader, no forward"])
def test_a_crowded_machine_is_a_cause_only_if_the_process_itself_waits(readings, named, without, monkeypatch):
    """A loop that slept 20 ms in each step was told that it waits for a core, up to 77 %."""
    monkeypatch.setattr(
        simulated_telemetry, "HOST", HOST | {"core_wait_total": 0.0} if "core_wait_total" in readings else HOST
    )
    made = SimulatedPhase(device=None, dispatch=200.0, readings=CROWDED | readings)
    report = judged(made, facts=ON_CPU, without=(*BLIND_ON_CPU, *without))
    assert [finding.cause for finding in report.findings] == (["contended_cores"] if named else [])
    assert (report.verdict.severity != "none") == named
    assert {band.severity == "none" for band in report.phases} == {not named}
    assert "critical" not in {report.verdict.severity, *(band.severity for band in report.phases)}


def test_threads_that_crowd_the_cores_are_at_stake_even_if_the_work_is_not_timed():
    """0 % was at stake in a run that lost 90 %: the work is not known without a loader and the forward pass."""
    made = SimulatedPhase(device=None, dispatch=200.0, readings=CROWDED)
    report = judged(made, facts={**ON_CPU, "torch_threads": 64}, without=(*BLIND_ON_CPU, "loader_wait", "forward"))
    assert report.findings[0].cost_share == pytest.approx(1 - 16 / 70, abs=0.01)
    assert (report.verdict.severity, report.verdict.confidence) == ("warning", "low")


def test_a_cause_that_two_regimes_name_is_one_finding():
    """A training with Hugging Face's Trainer got two findings with the same text about threads that wait for a core."""
    made = SimulatedPhase(device=None, dispatch=200.0, python=120.0, readings={"cpu_pressure": 0.6, "run_queue": 40.0})
    report = judged(made, facts=ON_CPU, without=(*HEALTHY, "gpu_utilisation"))
    named = [one.regime for one in report.regimes if one.status == "fires"]
    assert {"host", "compute"} <= set(named)
    assert [finding.cause for finding in report.findings].count("contended_cores") == 1


@pytest.mark.parametrize(
    ("loader", "model", "regime"),
    [(1.0, 100.0, "compute"), (1.0, 400.0, "compute"), (300.0, 100.0, "input"), (300.0, 800.0, "input")],
    ids=["simple data, small model", "simple data, large model", "complex, small", "complex, large"],
)
def test_small_and_large_models_on_simple_and_complex_data(loader, model, regime):
    assert judged(SimulatedPhase(load=loader, device=model)).verdict.regime == regime


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


def test_a_part_that_fails_costs_only_that_part(tmp_path, monkeypatch):
    path = write(tmp_path / NAME, simulate([simulated_phase("healthy", 20.0)]))
    monkeypatch.setattr("tb_bottleneck.diagnosis.telemetry.sampled_work", lambda _: 1 / 0)
    report = diagnose_telemetry(str(path))
    assert report.HasField("verdict")
    assert [broken.part for broken in report.broken_parts] == ["input"]


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
    assert {band.title for band in healthy.phases} == {healthy.verdict.title} == {"At work"}
    assert puzzling.verdict.title == "Unexplained"
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
    assert "the loader waits for the storage" in text
    assert "timed by the monitor" in text
    assert "2:00 to 4:00 Waiting for data 40 % critical" in text
