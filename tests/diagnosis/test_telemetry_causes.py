"""What the settings and the machine add to a verdict: links, threads, libraries and crowded cores."""

from dataclasses import replace

import pytest
from diagnosis.judged_runs import BLIND_ON_CPU, ON_CPU, judged, share_of
from helpers import simulated_telemetry
from helpers.simulated_telemetry import FACTS, HEALTHY, HOST, SimulatedPhase
from helpers.telemetry_problems import simulated_phase


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
        (3.0, "slow_slot", "generation 3 x8, the limit of this slot; the device has 16 lanes"),
    ],
)
def test_a_link_at_the_limit_of_its_slot_is_not_told_that_it_could_be_what_it_is(gpu_max, cause, speed):
    """A card of generation 4 in a slot of generation 3 was told that its link could be generation 3 x8."""
    readings = SLOT_3 | {"pcie_generation_gpu_max": gpu_max, "pcie_received": 6e9}
    report = judged(replace(simulated_phase("copies"), readings=readings))
    assert "degraded_link" not in [finding.cause for finding in report.findings]
    assert cause in [finding.cause for finding in report.findings]
    assert speed in [row.text for finding in report.findings for row in finding.evidence]


@pytest.mark.parametrize(
    ("name", "named"),
    [("NVIDIA GeForce RTX 4090", True), ("NVIDIA GeForce RTX 4060", False), ("ACME", False)],
)
def test_a_slot_with_fewer_lanes_than_the_device_is_a_finding_even_if_copies_cost_little(name, named):
    """An RTX 4090 at x8 was "the highest of this device in this slot"; an RTX 4060 has eight lanes."""
    readings = {
        "pcie_generation": 4.0,
        "pcie_generation_max": 4.0,
        "pcie_generation_gpu_max": 4.0,
        "pcie_width": 8.0,
        "pcie_width_max": 8.0,
    }
    report = judged(SimulatedPhase(readings=readings), facts=FACTS | {"device_name": name})
    assert ("slow_slot" in [finding.cause for finding in report.findings]) == named


def test_a_link_is_judged_under_load_only():
    slow_while_idle = SimulatedPhase(device=5.0, load=300.0, readings={"pcie_generation": 1.0})
    assert "degraded_link" not in [finding.cause for finding in judged(slow_while_idle).findings]


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
    ("system", "advised"), [("Windows", 'backend="cudagraphs"'), ("Linux", 'mode="reduce-overhead"')]
)
def test_a_cuda_graph_needs_no_triton_on_windows(system, advised):
    findings = judged(simulated_phase("launches"), facts=FACTS | {"os": system}).findings
    code = next(finding.fix.code for finding in findings if finding.cause == "small_kernels")
    assert code.startswith(f"model = torch.compile(model, {advised})")
    assert code.count("torch.compile") == 1


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
        ({"device_capability": "8.6", "torch": "1.7.1+cu110", "torch_architectures": ["sm_80"]}, True),
        ({"device_capability": "8.6", "torch": "1.8.0", "torch_architectures": ["sm_80"]}, False),
        ({"device_capability": "8.0", "torch": "1.10.0"}, False),
        ({"device_capability": "8.0", "torch": "1.6.0"}, True),
        ({"device_capability": "6.1", "torch": "1.6.0"}, False),
        ({"device_capability": "8.0", "torch": "nightly"}, False),
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


@pytest.mark.parametrize(
    ("facts", "shown"),
    [
        ({"processor": "Intel(R) Xeon(R)", "blas_pools": [{"api": "blas", "library": "openblas"}]}, True),
        ({"processor": "Intel(R) Xeon(R)", "blas_pools": [{"api": "blas", "library": "mkl"}]}, False),
        ({"processor": "AMD EPYC", "blas_pools": [{"api": "blas", "library": "openblas"}]}, False),
        ({"processor": "Intel(R) Xeon(R)", "blas_pools": [7]}, False),
    ],
)
def test_the_blas_of_numpy_is_shown_where_making_batches_takes_all_cores(facts, shown):
    report = judged(simulated_phase("saturated"), facts=FACTS | facts)
    assert report.findings[0].cause == "too_few_cores"
    texts = {row.label: row.text for row in report.findings[0].evidence}
    assert (texts.get("BLAS of NumPy") == "openblas on Intel(R) Xeon(R)") == shown


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


@pytest.mark.parametrize(("logging", "first"), [(100.0, "logging"), (10.0, "contended_cores")])
def test_other_programs_come_after_a_cause_of_the_training_of_comparable_cost(logging, first, monkeypatch):
    monkeypatch.setattr(simulated_telemetry, "HOST", HOST | {"core_wait_total": 0.0})
    readings = CROWDED | {"process_cores": 0.2, "core_wait_total": 0.5e9}
    made = SimulatedPhase(device=None, dispatch=200.0, interrupted={"logging": logging}, readings=readings)
    report = judged(made, facts=ON_CPU, without=BLIND_ON_CPU)
    assert report.findings[0].cause == first
    assert "contended_cores" in [finding.cause for finding in report.findings]
    assert (report.verdict.regime == "interruption") == (first == "logging")


def test_threads_that_crowd_the_cores_are_at_stake_even_if_the_work_is_not_timed():
    """0 % was at stake in a run that lost 90 %: the work is not known without a loader and the forward pass."""
    made = SimulatedPhase(device=None, dispatch=200.0, readings=CROWDED)
    report = judged(made, facts={**ON_CPU, "torch_threads": 64}, without=(*BLIND_ON_CPU, "loader_wait", "forward"))
    assert report.findings[0].cost_share == pytest.approx(1 - 16 / 70, abs=0.01)
    assert (report.verdict.severity, report.verdict.confidence) == ("warning", "low")


@pytest.mark.parametrize(("part", "causes"), [(1.0, ["recompilation"]), (0.5, ["recompilation", "periodic_pauses"])])
def test_pauses_in_which_torch_compiles_again_name_the_function_and_the_guard(part, causes):
    """The same pauses as without the log, of which the compilations take this part."""
    paused = simulated_phase("paused")
    plain = judged(paused)
    assert plain.findings[0].cause == "periodic_pauses"
    lost_us = share_of(plain, "interruption") * (plain.window.end_ns - plain.window.begin_ns) / 1e3
    guard = "size == 32 # return head(x, size) # model.py:14 in forward"
    entries = [
        ["0/0", "forward", "model.py", 9, plain.window.begin_ns / 1e3, 1e6, ""],
        ["0/1", "forward", "model.py", 9, plain.window.begin_ns / 1e3, part * lost_us, guard],
        ["0/2", "forward", "model.py", 9, 2**53 - 1, 2**53 - 1, guard],
    ]
    report = judged(paused, facts=FACTS | {"compile_log": {"compilations": entries}})
    assert [finding.cause for finding in report.findings if finding.regime == "interruption"] == causes
    finding = report.findings[0] if part == 1.0 else next(each for each in report.findings if each.cause == causes[0])
    assert finding.cost_share == pytest.approx(part * share_of(plain, "interruption"), rel=0.05)
    assert [(place.file, place.line, place.function) for place in finding.where] == [("model.py", 9, "forward")]
    assert any("size == 32, in model.py:14" in row.text for row in finding.evidence)


def test_a_cause_that_two_regimes_name_is_one_finding():
    """A training with Hugging Face's Trainer got two findings with the same text about threads that wait for a core."""
    made = SimulatedPhase(device=None, dispatch=200.0, python=120.0, readings={"cpu_pressure": 0.6, "run_queue": 40.0})
    report = judged(made, facts=ON_CPU, without=(*HEALTHY, "gpu_utilisation"))
    named = [one.regime for one in report.regimes if one.status == "fires"]
    assert {"host", "compute"} <= set(named)
    assert [finding.cause for finding in report.findings].count("contended_cores") == 1


@pytest.mark.parametrize(("by_type", "advised"), [({"float32": 9.0}, True), ({"bfloat16": 9.0}, False)])
def test_full_memory_of_a_model_in_fp32_is_told_about_autocast(by_type, advised):
    report = judged(simulated_phase("retries"), facts=FACTS | {"parameters_by_dtype": by_type})
    finding = next(finding for finding in report.findings if finding.cause == "memory_pressure")
    assert ("torch.autocast" in finding.fix.code) == advised
    assert ("100 % of the parameters are in fp32" in finding.fix.code) == advised


@pytest.mark.parametrize(("threads", "advised"), [(16, "torch.set_num_threads(4)"), (1, None)])
def test_several_processes_with_a_thread_per_core_are_told_their_share(threads, advised, monkeypatch):
    """Each of several trainings on one machine had as many threads as cores; only `nice` was advised."""
    monkeypatch.setattr(simulated_telemetry, "HOST", HOST | {"core_wait_total": 0.0})
    readings = {"cpu_pressure": 0.8, "run_queue": 64.0, "process_cores": 0.2, "core_wait_total": 0.5e9}
    made = SimulatedPhase(device=None, dispatch=200.0, readings=readings)
    report = judged(made, facts=ON_CPU | {"torch_threads": threads}, without=BLIND_ON_CPU)
    finding = next(finding for finding in report.findings if finding.cause == "contended_cores")
    assert (advised is not None and advised in finding.fix.code) or "set_num_threads" not in finding.fix.code
    assert ("set_num_threads" in finding.fix.code) == (advised is not None)
