"""The rules for telemetry: each documents its signals, and fires if the rule for traces fires."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from helpers.simulated_telemetry import HEALTHY, simulate
from helpers.telemetry_problems import simulated_phase

from tb_bottleneck.attribution.telemetry import telemetry_recording
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.bottlenecks import judge as traces
from tb_bottleneck.bottlenecks import telemetry_judge as judge
from tb_bottleneck.bottlenecks.allocator import telemetry_rule as allocator
from tb_bottleneck.bottlenecks.host import telemetry_rule as host
from tb_bottleneck.bottlenecks.input import telemetry_rule as input_rule
from tb_bottleneck.bottlenecks.rule_types import ABSTAINS, BROKEN, CLEAR, FIRES
from tb_bottleneck.bottlenecks.sync import rule as sync
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.telemetry.telemetry import Telemetry


def test_traces_and_telemetry_judge_the_same_regimes_by_the_same_thresholds():
    assert tuple(rule.regime for rule in judge.RULES) == REGIMES
    assert [rule.fires_at for rule in judge.RULES] == [rule.fires_at for rule in traces.RULES]


@pytest.mark.parametrize("problem", ["healthy", "few_workers", "hot", "link"])
def test_no_rule_breaks(problem):
    recorded = Telemetry()
    recorded.add(simulate([simulated_phase(problem, 40.0)]))
    verdicts = judge.judge_all(Measures(telemetry_recording.TelemetryRecording(recorded)))
    assert BROKEN not in [verdict.judgement.status for verdict in verdicts]


def test_on_a_cpu_telemetry_does_not_call_launching_clear():
    """Telemetry cannot separate operators' own work from call overhead: a share of 0 was reported as measured."""
    recorded = Telemetry()
    of_a_gpu = (*HEALTHY, "gpu_utilisation", "device_busy")
    recorded.add(
        simulate([simulated_phase("on_cpu", 40.0)], facts={"device_kind": "cpu", "cores": 16}, without=of_a_gpu)
    )
    launch = next(
        one
        for one in judge.judge_all(Measures(telemetry_recording.TelemetryRecording(recorded)))
        if one.regime == "launch"
    )
    assert launch.judgement.status == ABSTAINS
    assert "only a trace distinguishes" in launch.judgement.missing


def test_on_a_cpu_a_wait_for_batches_comes_before_time_outside_of_modules():
    """That time may be operators, so nothing is known to be saved in it."""
    recorded = Telemetry()
    phase = replace(simulated_phase("on_cpu", 40.0), load=100.0, python=300.0)
    recorded.add(
        simulate(
            [phase], facts={"device_kind": "cpu", "cores": 16}, without=(*HEALTHY, "gpu_utilisation", "device_busy")
        )
    )
    verdicts = judge.judge_all(Measures(telemetry_recording.TelemetryRecording(recorded)))
    shares = {verdict.regime: verdict.judgement.share for verdict in verdicts}
    assert shares["host"] > shares["input"] > 0.1
    assert judge.conclusion_of(verdicts).regime == "input"


class Known:
    """Measures of a run on a device, by name."""

    on_device = True
    account = SimpleNamespace(share=lambda _regime: 0.0)

    def __init__(self, values):
        self.values = values

    def __call__(self, measure):
        value = self.values.get(measure.__name__)
        return Missing(f"{measure.__name__} is missing") if value is None else Measure(value, "count")

    def value(self, measure, otherwise):
        return self.values.get(measure.__name__, otherwise)


BLOCKS = {"blocks_allocated": 3.0}
IDLE = {"device_idle": 0.4, "utilisation": 0.6}


@pytest.mark.parametrize(
    ("regime", "values", "status", "because"),
    [
        ("communication", {"world_size": 1}, CLEAR, ""),
        ("communication", {"world_size": 2}, ABSTAINS, "only in traces"),
        ("communication", {}, ABSTAINS, "world_size is missing"),
        ("sync", {**IDLE, "idle_inside_phases": sync.FIRES_AT / 2}, CLEAR, ""),
        ("sync", {**IDLE, "idle_inside_phases": sync.FIRES_AT}, ABSTAINS, "follows a wait"),
        ("allocator", {**BLOCKS, "allocations_retried": allocator.RETRIES}, FIRES, ""),
        ("allocator", {**BLOCKS, "allocations_retried": allocator.RETRIES / 2}, CLEAR, ""),
        ("sync", {"device_idle": 0.4, "idle_inside_phases": 0.0}, ABSTAINS, "utilisation is missing"),
    ],
)
def test_what_telemetry_does_not_show_is_clear_only_where_it_cannot_be(regime, values, status, because):
    rule = next(rule for rule in judge.RULES if rule.regime == regime)
    judgement = rule.judge(Known(values))
    assert (judgement.status, because in judgement.missing) == (status, True)


CROWDED = {
    "core_pressure": host.HIGH_CORE_PRESSURE,
    "run_queue_per_core": host.HIGH_RUN_QUEUE + 1,
    "core_wait": host.MIN_CORE_WAIT,
}


@pytest.mark.parametrize("missing", [None, *CROWDED])
def test_other_threads_are_named_only_if_all_three_signs_are_there(missing):
    values = CROWDED | ({missing: CROWDED[missing] / 2} if missing else {})
    assert (host.contended_cores(Known(values), 0.5) is None) == (missing is not None)


@pytest.mark.parametrize(
    ("ahead", "cause"), [(0.9, "tensor_handover"), (0.1, "too_few_workers"), (None, "too_few_workers")]
)
def test_workers_with_a_full_queue_are_not_too_few(ahead, cause):
    values = {"live_workers": 2.0, "worker_busy": 0.3, "cores_busy": 0.5, "cores_usable": 8.0}
    known = Known(values if ahead is None else values | {"workers_ahead": ahead})
    assert input_rule._cause(known, 0.4).name == cause


def test_workers_that_keep_up_with_the_rest_of_the_step_are_not_slow_storage():
    values = {"live_workers": 4.0, "workers_wait": 0.6, "worker_busy": 0.1, "cores_usable": 8.0}
    for needed, cause in ((4.0, "tensor_handover"), (5.0, "slow_storage")):
        assert input_rule._cause(Known(values | {"worker_processes_needed": needed}), 0.4).name == cause
