"""NVML's results in our units, from a recorded file: the source of each signal, and signals that a partition lacks."""

from itertools import pairwise

import pytest
from monitor.samplers.replay import Replay

from tb_bottleneck.monitor.nvml.queries import queries
from tb_bottleneck.monitor.nvml.readings import OtherProcesses, OtherWork, PcieTraffic
from tb_bottleneck.monitor.samplers.gpu_sampler import GpuSampler
from tb_bottleneck.schema.signals import SERIES


class Clock:
    """A manual clock."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def sampler(replay: Replay, clock: Clock) -> GpuSampler[Replay]:
    remade = {OtherProcesses: lambda: OtherProcesses(lambda: {4242}), OtherWork: lambda: OtherWork(lambda: {4242})}
    remade[PcieTraffic] = lambda: PcieTraffic(clock)
    asked = [remade.get(type(one), lambda one=one: one)() for one in queries()]
    return GpuSampler(replay, asked, lambda gpus: gpus[:1], clock)


def values(gpus: GpuSampler[Replay]) -> dict[str, float]:
    return {reading.name: reading.value for reading in gpus.read()}


def test_a_loaded_h200_in_our_units() -> None:
    replay, clock = Replay("h200.json"), Clock()
    assert values(sampler(replay, clock)) == pytest.approx(
        {
            "gpu_utilisation": 0.97,
            "memory_utilisation": 0.41,
            "memory_used": 100e9,
            "memory_total": 150754820096,
            "power": 652.3,
            "power_limit": 700,
            "power_limit_default": 700,
            "energy_total": 123456.789,
            "temperature": 61,
            "memory_temperature": 70,
            "sm_clock": 1785e6,
            "sm_clock_max": 1980e6,
            "memory_clock": 3201e6,
            "memory_clock_max": 3201e6,
            "clock_event_reasons": 4,
            "power_capped_total": 5e9,
            "thermal_capped_total": 0,
            "pcie_generation": 5,
            "pcie_generation_max": 5,
            "pcie_generation_gpu_max": 5,
            "pcie_width": 16,
            "pcie_width_max": 16,
            "pcie_replays_total": 2,
            "nvlink_sent_total": 1024**2,
            "nvlink_received_total": 2 * 1024**2,
            "other_processes": 1,
        }
    )


def test_rates_and_metrics_between_two_moments_come_with_the_second() -> None:
    replay, clock = Replay("h200.json"), Clock()
    gpus = sampler(replay, clock)
    values(gpus)
    replay.moment, clock.now = 1, 105.0
    found = values(gpus)
    assert found["pcie_sent"] == pytest.approx(3e9 / 5)
    assert found["pcie_received"] == pytest.approx(20e9 / 5)
    assert [found[name] for name in ("sm_activity", "sm_occupancy", "tensor_activity", "dram_activity")] == [
        pytest.approx(share) for share in (0.88, 0.315, 0.4525, 0.62)
    ]
    assert "fp32_activity" not in found, "the driver did not tell it, and missing is not zero"
    assert found["other_processes_utilisation"] == pytest.approx(0.15), "only what came since the reading before counts"


def test_every_signal_is_declared_and_asked_for_once() -> None:
    signals = [signal for question in queries() for signal in question.signals]
    assert set(signals) <= SERIES.keys()
    assert len(signals) == len(set(signals))


def test_a_partition_gives_its_own_memory_and_the_boards_power_but_no_utilisation() -> None:
    replay, clock = Replay("a100_mig.json"), Clock()
    gpus = sampler(replay, clock)
    found = values(gpus)
    assert (found["memory_used"], found["power"]) == (937965568, 210)
    assert {reading.device for reading in sampler(replay, clock).read()} == {"MIG-33333333-3333-3333-3333-333333333333"}
    assert "partition" in gpus.missing()["gpu_utilisation"]
    assert "power" not in gpus.missing()


def test_an_older_driver_has_the_reasons_under_their_older_name() -> None:
    assert values(sampler(Replay("a100_mig.json"), Clock()))["clock_event_reasons"] == 1


def test_without_byte_counters_the_slow_call_is_used_sparingly() -> None:
    replay, clock = Replay("a100_mig.json"), Clock()
    gpus = sampler(replay, clock)
    assert values(gpus)["pcie_received"] == 1500000 * 1000
    calls = []
    for _ in range(40):
        clock.now += 1.0
        replay.asked.clear()
        values(gpus)
        if "nvmlDeviceGetPcieThroughput 1" in replay.asked:
            calls.append(clock.now)
    assert all(9 <= later - sooner <= 11 for sooner, later in pairwise(calls))
    assert len(calls) == 4


def test_what_changes_seldom_is_asked_seldom() -> None:
    replay, clock = Replay("h200.json"), Clock()
    gpus = sampler(replay, clock)
    counts: dict[str, int] = {}
    for _ in range(60):
        replay.asked.clear()
        values(gpus)
        for call in replay.asked:
            counts[call] = counts.get(call, 0) + 1
        clock.now += 1.0
    assert counts["nvmlDeviceGetUtilizationRates"] == 60
    assert counts["nvmlDeviceGetTotalEnergyConsumption"] == 12
    assert counts["nvmlDeviceGetEnforcedPowerLimit"] <= 2


def test_a_list_of_processes_without_our_own_says_nothing_of_others() -> None:
    replay, clock = Replay("h200.json"), Clock()
    gpus = GpuSampler(replay, [OtherProcesses(lambda: {1}), OtherWork(lambda: {1})], lambda gpus: gpus[:1], clock)
    assert values(gpus) == {}
    assert "container" in gpus.missing()["other_processes"]
    assert "container" in gpus.missing()["other_processes_utilisation"]
