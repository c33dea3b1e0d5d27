"""Measures from telemetry: a number with its unit if the signal was recorded, or the name of the missing signal."""

from dataclasses import replace
from math import exp

import pytest
from helpers.simulated_telemetry import FACTS, HEALTHY, HOST, S, SimulatedPhase, simulate
from helpers.telemetry_files import context
from helpers.telemetry_problems import simulated_phase

from tb_bottleneck.attribution.telemetry import telemetry_recording
from tb_bottleneck.base.deviations import RUN_TO_RUN_NOISE
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.bottlenecks.compute import torch_build as builds
from tb_bottleneck.bottlenecks.input import pipeline as input_pipeline
from tb_bottleneck.bottlenecks.input import storage
from tb_bottleneck.bottlenecks.interruption import telemetry_facts as interruptions
from tb_bottleneck.bottlenecks.transfer import link
from tb_bottleneck.measures.telemetry import device, host
from tb_bottleneck.schema.telemetry_pb2 import Packet
from tb_bottleneck.telemetry.telemetry import Telemetry

EVERY_SIGNAL = (*HEALTHY, *HOST, "gpu_utilisation", "steps")


def recording_of(*phases: SimulatedPhase, facts=None, without=()) -> telemetry_recording.TelemetryRecording:
    telemetry = Telemetry()
    telemetry.add(simulate(phases, 0, facts, without))
    return telemetry_recording.TelemetryRecording(telemetry)


def value(measure, *phases: SimulatedPhase, **options) -> float:
    found = measure(recording_of(*phases, **options))
    assert isinstance(found, Measure), found
    return found.value


@pytest.mark.parametrize(
    ("measure", "made", "expected"),
    [
        (device.utilisation, SimulatedPhase(), 1.0),
        (input_pipeline.loader_wait_time, SimulatedPhase(load=158.5), 158.5e6),
        (input_pipeline.worker_busy, simulated_phase("storage"), 0.15),
        (input_pipeline.storage_pressure, simulated_phase("storage"), 0.6),
        (device.heat_throttled, simulated_phase("hot"), 1.0),
        (device.clock_reduction, simulated_phase("hot"), 0.4),
        (device.loaded_power_share, simulated_phase("capped"), 1.0),
        (link.link_reached, simulated_phase("link"), 0.25),
        (host.host_waits, simulated_phase("waits"), 3.0),
        (host.blocks_allocated, simulated_phase("emptied"), 6.0),
        (host.long_step_excess, simulated_phase("paused"), 20 * 66.7e6),
        (host.quota_throttled, simulated_phase("quota"), 0.25),
        (host.torch_threads_per_core, SimulatedPhase(), 0.5),
        (host.run_queue_per_core, SimulatedPhase(), 5 / 16),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_a_measure_is_what_was_simulated(measure, made, expected):
    assert value(measure, made) == pytest.approx(expected, rel=0.04)


def test_workers_and_storage_are_measured_while_the_device_waits_for_data():
    calm = simulated_phase("healthy", 300.0)
    assert value(input_pipeline.storage_pressure, calm, simulated_phase("storage", 60.0)) == pytest.approx(
        0.6, abs=0.05
    )


@pytest.mark.parametrize(
    ("facts", "cores", "advised"),
    [
        ({"workers": 2}, 3.0, 3),
        ({"workers": 2}, 16.0, 4),
        ({"workers": 0}, 2.0, 2),
        ({"workers": 0}, 16.0, 4),
        ({}, 16.0, 8),  # 4 are alive
    ],
)
def test_no_more_workers_are_advised_than_there_are_cores(facts, cores, advised):
    few_workers = simulated_phase("few_workers")
    phase = replace(few_workers, readings={**few_workers.readings, "cpu_usable_cores": cores})
    assert value(input_pipeline.worker_count_to_try, phase, facts=FACTS | facts) == advised


def test_no_number_is_advised_that_the_loader_has_already():
    few_workers = simulated_phase("few_workers")
    phase = replace(few_workers, readings={**few_workers.readings, "cpu_usable_cores": 2.0})
    advised = input_pipeline.worker_count_to_try(recording_of(phase, facts=FACTS | {"workers": 2}))
    assert isinstance(advised, Missing)


def test_workers_that_wait_may_be_more_than_the_cores():
    few_workers = simulated_phase("few_workers")
    phase = replace(few_workers, readings={**few_workers.readings, "cpu_usable_cores": 2.0})
    assert value(input_pipeline.waiting_workers_to_try, phase, facts=FACTS | {"workers": 2}) == 4
    assert value(input_pipeline.waiting_workers_to_try, phase, facts=FACTS | {"workers": 6}) == 8, "four for each core"


def test_a_period_is_given_in_steps():
    found = host.long_step_period(recording_of(simulated_phase("paused")))
    assert isinstance(found, Measure)
    assert found.text == "every 20 steps"


def test_a_link_is_described_in_words():
    found = link.link_speed(recording_of(simulated_phase("link")))
    assert isinstance(found, Measure)
    assert found.text == "generation 5 x4, maximum generation 5 x16"


def test_blas_is_named_even_if_the_facts_are_malformed():
    pools = [{"api": "blas", "library": "openblas"}, {"api": "openmp", "library": "gomp"}, "nonsense", 3]
    found = host.blas_library(recording_of(facts={**FACTS, "blas_pools": pools, "torch_blas": "mkl"}))
    assert isinstance(found, Measure)
    assert found.text == "mkl, openblas"
    assert isinstance(host.blas_library(recording_of(facts={**FACTS, "blas_pools": 7})), Missing)


def _epochs(waits: list[float], begins: list[int], workers: int) -> float:
    """Returns the part of the waits that is at the starts of epochs; one wait per step of 10 ms, in ms."""
    telemetry = Telemetry()
    packet = Packet()
    for number, wait in enumerate(waits):
        packet.steps.number.append(number)
        packet.steps.end_unix_ns.append(1e18 + number * 1e8)
        packet.steps.wall_ns.append((10 + wait) * 1e6)
    packet.steps.columns.add(name="loader_wait", values=[wait * 1e6 for wait in waits])
    packet.steps.columns.add(name="epoch_start", values=[float(number in begins) for number in range(len(waits))])
    telemetry.add([context({"workers": workers}), packet])
    found = interruptions.epoch_start_wait(telemetry_recording.TelemetryRecording(telemetry))
    assert isinstance(found, Measure)
    return found.value


def test_starting_workers_costs_the_waits_for_their_end_and_until_their_queue_is_full():
    """The first five steps are warm-up. The wait of the first batch includes that for the end of the old workers."""
    waits = [0.0] * 5 + [2.0] * 5 + [60.0, 8.0, 8.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0]
    assert _epochs(waits, [10], workers=1) == pytest.approx((60 + 6) / 100), "a queue of two"
    assert _epochs(waits, [10], workers=2) == pytest.approx((60 + 6 + 6) / 100), "a queue of four"
    assert _epochs(waits, [], workers=2) == 0


def test_at_most_the_fastest_steps_remain_without_a_cost_on_a_cpu():
    every = SimulatedPhase(device=None, dispatch=20.0, load=30.0, interrupted={"logging": 50.0})
    options = {"facts": {"device_kind": "cpu"}, "without": (*HEALTHY, "gpu_utilisation", "device_busy")}
    without_loader = value(host.most_without_loader, every, **options)
    fastest = 71 / 101.5 * exp(-RUN_TO_RUN_NOISE)
    assert without_loader == pytest.approx(1 - fastest, abs=0.01), "a tenth of the steps is a little faster"
    beside_writer = value(host.most_without_logging, every, **options)
    assert beside_writer == pytest.approx(1 - 0.25 * 51 / 101.5, abs=0.03), "its thread slowed all steps"


def test_on_a_device_the_cost_itself_is_the_bound():
    assert isinstance(host.most_without_loader(recording_of(SimulatedPhase())), Missing)


MODULES = (builds, device, input_pipeline, interruptions, host, storage)
HELPERS = ("throttling_loss_by_window", "core_wait_by_window", "configured_workers", "while_starved")

ALL = [
    measure
    for module in MODULES
    for name, measure in vars(module).items()
    if callable(measure) and getattr(measure, "__module__", "") == module.__name__ and not name.startswith("_")
    and name not in HELPERS
]  # fmt: skip


@pytest.mark.parametrize("measure", ALL, ids=lambda measure: measure.__name__)
def test_without_signals_a_measure_says_what_is_missing_and_is_never_zero(measure):
    found = measure(recording_of(simulated_phase("healthy", 20.0), facts={}, without=EVERY_SIGNAL))
    if measure in (
        host.long_steps,
        device.bound_source,
        input_pipeline.waiting_workers_to_try,
        input_pipeline.worker_count_to_try,
        storage.storage_advice,
        link.pinning,
    ):
        return  # without steps there are no interruptions, the source is a text, and advice is not a measurement
    assert isinstance(found, Missing), f"{measure.__name__} gave {found} out of nothing"
    assert found.because


@pytest.mark.parametrize("measure", ALL, ids=lambda measure: measure.__name__)
def test_no_measure_is_infinite_or_none(measure):
    found = measure(
        recording_of(simulated_phase("hot", 20.0), simulated_phase("quota", 20.0), simulated_phase("paused", 20.0))
    )
    assert isinstance(found, Missing) or abs(found.value) < 1e3 * S
