"""The monitor's counters give a peak, its parts, and what rises; steady runs are not accused."""

import numpy as np
import pytest
from helpers.telemetry_files import write

from tb_bottleneck.diagnosis.telemetry import counted_memory, diagnose_telemetry
from tb_bottleneck.memory.categories import Category, MemoryAccount
from tb_bottleneck.memory.findings import near_limit
from tb_bottleneck.memory.telemetry_memory import TelemetryMemory
from tb_bottleneck.report.builders.memory import findings_message
from tb_bottleneck.schema.telemetry_pb2 import Packet, RunContext
from tb_bottleneck.telemetry.telemetry import Telemetry

S = 1_000_000_000
GPU = "GPU-1"


def packet(series=None, columns=None, seconds: int = 200) -> Packet:
    times = [1.7e18 + S * (1 + number) for number in range(seconds)]
    made = Packet(sequence=0)
    for name, values in (series or {}).items():
        device = GPU if name.startswith("memory") else ""
        made.series.add(name=name, device=device, unix_ns=times, values=np.broadcast_to(values, seconds).tolist())
    if columns:
        made.steps.number.extend(range(seconds))
        made.steps.end_unix_ns.extend(times)
        made.steps.wall_ns.extend([S] * seconds)
        for name, values in columns.items():
            made.steps.columns.add(name=name, values=np.broadcast_to(values, seconds).tolist())
    return made


def memory_of(series=None, columns=None, seconds: int = 200) -> TelemetryMemory:
    telemetry = Telemetry()
    telemetry.add([packet(series, columns, seconds)])
    return TelemetryMemory(telemetry, "cuda")


def causes(memory: TelemetryMemory) -> list[str]:
    return [finding.cause for finding in memory.findings()]


def test_tensors_cache_and_memory_outside_torch_are_told_apart():
    columns = {"memory_allocated": 40e9, "memory_allocated_peak": 50e9, "memory_reserved": 60e9}
    account = memory_of({"memory_used": 63e9, "memory_total": 80e9}, columns).account
    parts = {category.value: size for category, size in account.rows}
    assert parts == {"cache": 10_000_000_000, "outside_torch": 3_000_000_000, "unexplained": 50_000_000_000}
    assert account.peak == 63_000_000_000
    assert account.headroom == 17_000_000_000


def test_the_driver_alone_gives_the_peak():
    account = memory_of({"memory_used": np.linspace(1e9, 9e9, 200), "memory_total": 80e9}).account
    assert account.peak == 9_000_000_000


def test_without_counters_there_is_no_memory_part():
    assert memory_of().account is None
    assert counted_memory(Telemetry(), "cuda") is None


@pytest.mark.parametrize("name", ["memory_used", "memory_allocated"])
def test_memory_that_rises_through_the_run_is_found(name):
    rising = np.linspace(10e9, 73e9, 200)
    memory = memory_of(*(({name: rising}, None) if name == "memory_used" else (None, {name: rising})))
    assert causes(memory) == ["rising_memory"]
    assert memory.findings()[0].bytes > 40e9


STEADY = {
    "constant": 30e9,
    "rises in the first steps only": np.minimum(30e9, 5e9 * (1 + np.arange(200))),
    "varies": 30e9 + 8e9 * np.random.default_rng(0).random(200),
    "rises once": np.where(np.arange(200) < 120, 30e9, 40e9),
    "rises a little": np.linspace(30e9, 30.5e9, 200),
    "rises and falls": 30e9 + 20e9 * np.sin(np.arange(200) / 20),
}


@pytest.mark.parametrize("name", STEADY)
def test_other_courses_are_no_growth(name):
    assert not causes(memory_of({"memory_used": STEADY[name], "memory_total": 80e9}))


@pytest.mark.parametrize(("seconds", "fires"), [(25, False), (30, True), (60, True)])
def test_a_short_run_is_enough_but_not_a_few_readings(seconds, fires):
    memory = memory_of({"process_memory": np.linspace(1e9, 9e9, seconds)}, seconds=seconds)
    assert bool(causes(memory)) == fires


def test_a_start_that_levels_off_is_no_growth():
    level = 4e9 * (1 - np.exp(-np.arange(60) / 15))
    assert not causes(memory_of({"process_memory": 1e9 + level}, seconds=60))


@pytest.mark.parametrize(("kept", "fires"), [(560, True), (300, False)])
def test_a_leak_is_even_in_steps_also_if_these_become_longer(kept, fires):
    """Of 560 steps 400 take 0.1 s and the others 1 s; each of the first `kept` steps adds 10 MB."""
    ends = np.concatenate((np.arange(1, 401) / 10, 40.0 + np.arange(1, 161)))
    done = np.searchsorted(ends, 1.0 + np.arange(200), side="right")
    made = packet({"process_memory": 1e9 + 1e7 * np.minimum(done, kept)})
    made.steps.number.extend(range(len(ends)))
    made.steps.end_unix_ns.extend(1.7e18 + S * ends)
    made.steps.wall_ns.extend(np.diff(ends, prepend=0.0) * S)
    telemetry = Telemetry()
    telemetry.add([made])
    assert causes(TelemetryMemory(telemetry, "cuda")) == ["rising_host_memory"] * fires


@pytest.mark.parametrize(("used", "fires"), [(76e9, True), (70e9, False)])
def test_a_full_device_is_found(used, fires):
    assert ("near_limit" in causes(memory_of({"memory_used": used, "memory_total": 80e9}))) == fires


@pytest.mark.parametrize(("share", "fires"), [(0.97, True), (0.9, False)])
def test_a_full_host_is_found(share, fires):
    assert ("host_memory_short" in causes(memory_of({"host_memory_used": share}))) == fires


@pytest.mark.parametrize(
    ("name", "cause"), [("process_memory", "rising_host_memory"), ("worker_pss", "rising_worker_memory")]
)
def test_host_memory_that_rises_is_found(name, cause):
    assert causes(memory_of({name: np.linspace(1e9, 4e9, 200)})) == [cause]
    assert not causes(memory_of({name: STEADY["rises in the first steps only"]}))
    assert not causes(memory_of({name: STEADY["rises and falls"]}))


@pytest.mark.parametrize(("used", "fires"), [(62e6, True), (40e6, False)])
def test_full_shared_memory_is_found(used, fires):
    found = causes(memory_of({"shared_memory_used": used, "shared_memory_total": 64e6}))
    assert ("shared_memory_short" in found) == fires


@pytest.mark.parametrize(("pinned", "fires"), [(40e9, True), (10e9, False)])
def test_much_pinned_memory_is_found(pinned, fires):
    found = causes(memory_of({"pinned_memory": pinned, "host_memory_total": 64e9}))
    assert ("pinned_memory_high" in found) == fires


def test_each_finding_needs_both_of_its_signals():
    assert not causes(memory_of({"shared_memory_used": 62e6}))
    assert not causes(memory_of({"pinned_memory": 40e9}))


def test_the_report_of_telemetry_has_the_memory_part(tmp_path):
    readings = {"memory_used": np.linspace(10e9, 73e9, 200), "memory_total": 80e9, "gpu_utilisation": 0.9}
    path = write(
        tmp_path / "events.out.tfevents.1.host.1.0", [RunContext(schema=1), packet(readings, {"forward": 1e8})]
    )
    report = diagnose_telemetry(str(path))
    assert report.memory.evidence_source == "telemetry"
    assert [finding.cause for finding in report.memory.findings] == ["rising_memory", "near_limit"]
    assert report.memory.headroom_bytes == 7e9


@pytest.mark.parametrize(
    ("by_type", "advised"),
    [
        ({"float32": 90.0, "bfloat16": 10.0}, True),
        ({"float32": 10.0, "bfloat16": 90.0}, False),
        ({}, False),
        (7, False),
    ],
)
def test_a_full_memory_of_a_model_in_fp32_is_told_about_autocast(by_type, advised) -> None:
    telemetry = Telemetry()
    telemetry.facts["parameters_by_dtype"] = by_type
    memory = TelemetryMemory(telemetry, "cuda")
    account = MemoryAccount({Category.UNEXPLAINED: 95}, "telemetry", "cuda", 95, 95, capacity=100)
    (message,) = findings_message([near_limit(account, memory._in_fp32())])
    assert ("torch.autocast" in message.fix.code) == advised
    assert ("Parameters in 32 bits, share" in [row.label for row in message.evidence]) == advised
