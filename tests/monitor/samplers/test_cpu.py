"""Tests of the CPU samplers: busy cores, throttling by the quota, pressure, run queue, and thread pools.

Quotas are tested with both versions of control groups, including parents. Facts contain no path of a library.
"""

import json
from collections import namedtuple

import psutil
import pytest
import threadpoolctl
from monitor.samplers.machine import Machine, values

from tb_bottleneck.monitor.samplers.cpu import Cores, Pressure, Quota, RunQueue, UsableCores, thread_pool_facts

Core = namedtuple("Core", "user nice system idle iowait irq softirq steal guest guest_nice", defaults=[0.0] * 10)
Elsewhere = namedtuple("Elsewhere", "user system idle interrupt dpc")


def cores(*readings: list[object]) -> list[dict[str, float]]:
    waiting = iter(readings)
    sampler = Cores(lambda: next(waiting))
    return [values(sampler) for _ in readings]


def test_one_core_busy_and_one_half() -> None:
    found = cores([Core(), Core()], [Core(user=0.5, system=0.5), Core(user=0.25, softirq=0.25, idle=0.5)])
    assert found == [{}, {"cpu_busy_cores": 1.5, "cpu_top_core": 1.0}]


def test_waiting_for_storage_and_time_that_was_stolen_is_no_work() -> None:
    assert cores([Core()], [Core(user=0.2, iowait=0.4, steal=0.4)])[1]["cpu_busy_cores"] == pytest.approx(0.2)


def test_time_of_guests_is_counted_once() -> None:
    assert cores([Core()], [Core(user=1.0, guest=1.0)])[1]["cpu_busy_cores"] == 1.0


def test_time_in_interrupts_lies_within_system_time_on_windows() -> None:
    found = cores([Elsewhere(0, 0, 0, 0, 0)], [Elsewhere(0.25, 0.25, 0.5, 0.1, 0.1)])
    assert found[1]["cpu_busy_cores"] == 0.5


def test_a_core_that_came_or_went_begins_anew() -> None:
    assert cores([Core()], [Core(user=1), Core(user=1)], [Core(user=2), Core(user=1, idle=1)])[1:] == [
        {},
        {"cpu_busy_cores": 1.0, "cpu_top_core": 1.0},
    ]


def test_readings_within_one_tick_give_nothing() -> None:
    assert cores([Core(user=1)], [Core(user=1)])[1] == {}


def test_this_machine_has_no_more_busy_cores_than_cores() -> None:
    sampler = Cores()
    values(sampler)
    for _ in range(1_000_000):
        pass
    found = values(sampler)
    assert 0 <= found.get("cpu_top_core", 0) <= 1
    assert found.get("cpu_busy_cores", 0) <= (psutil.cpu_count() or 1)


def test_usable_cores_are_the_quotas_where_that_is_less(machine: Machine) -> None:
    machine.write("proc/self/cgroup", "0::/job\n")
    machine.write("sys/fs/cgroup/job/cpu.max", "50000 100000\n")
    assert values(UsableCores(machine.root)) == {"cpu_usable_cores": 0.5}


def stat(machine: Machine, folder: str, periods: int, throttled: int, time: str) -> None:
    text = f"usage_usec 5\nnr_periods {periods}\nnr_throttled {throttled}\n{time}\n"
    machine.write(f"sys/fs/cgroup/{folder}cpu.stat", text)


def test_version_2_adds_the_parents(machine: Machine) -> None:
    machine.write("proc/self/cgroup", "0::/slice/job\n")
    stat(machine, "slice/job/", 10, 4, "throttled_usec 3000")
    stat(machine, "slice/", 0, 0, "throttled_usec 500")
    machine.write("sys/fs/cgroup/cpu.stat", "usage_usec 7\nuser_usec 5\n")
    sampler = Quota(machine.root)
    assert values(sampler) == {"quota_throttled_total": 3_500_000}
    stat(machine, "slice/job/", 20, 9, "throttled_usec 4000")
    assert values(sampler) == {"quota_throttled_total": 4_500_000, "quota_throttled_periods": 0.5}
    assert sampler.missing() == {}


@pytest.mark.parametrize("mount", ["cpu", "cpu,cpuacct"])
def test_version_1_counts_nanoseconds(machine: Machine, mount: str) -> None:
    machine.write("proc/self/cgroup", "4:memory:/job\n3:cpu,cpuacct:/job\n")
    stat(machine, f"{mount}/job/", 5, 1, "throttled_time 12345")
    assert values(Quota(machine.root)) == {"quota_throttled_total": 12345}


def test_in_a_container_the_mounts_root_is_the_own_group(machine: Machine) -> None:
    machine.write("proc/self/cgroup", "0::/docker/3f2a\n")
    stat(machine, "", 5, 1, "throttled_usec 7")
    assert values(Quota(machine.root)) == {"quota_throttled_total": 7000}


def test_without_a_quota_there_are_no_periods(machine: Machine) -> None:
    machine.write("proc/self/cgroup", "1:cpu:/\n")
    stat(machine, "cpu/", 0, 0, "throttled_time 0")
    assert values(Quota(machine.root)) == {"quota_throttled_total": 0}
    assert Quota(machine.root).missing().keys() == {"quota_throttled_periods"}


def test_without_control_groups_both_are_missing(machine: Machine) -> None:
    assert values(Quota(machine.root)) == {}
    assert Quota(machine.root).missing().keys() == {"quota_throttled_total", "quota_throttled_periods"}


def test_a_path_that_leads_out_is_not_followed(machine: Machine) -> None:
    machine.write("proc/self/cgroup", "0::/../../job\n")
    (machine.root / "sys/fs/cgroup").mkdir(parents=True)
    machine.write("sys/job/cpu.stat", "nr_periods 1\nnr_throttled 1\nthrottled_usec 1\n")
    assert values(Quota(machine.root)) == {}


def pressure(machine: Machine, kind: str, total_us: int) -> None:
    full = "full avg10=0.00 avg60=0.00 avg300=0.00 total=999999999\n"
    machine.write(f"proc/pressure/{kind}", f"some avg10=1.00 avg60=0.20 avg300=0.10 total={total_us}\n{full}")


def test_waiting_microseconds_become_a_share_of_time(machine: Machine) -> None:
    for kind in ("cpu", "io", "memory"):
        pressure(machine, kind, 1_000_000)
    sampler = Pressure(machine.root, machine.clock)
    assert values(sampler) == {}
    machine.now += 2.0
    pressure(machine, "cpu", 1_500_000)
    pressure(machine, "io", 9_000_000)
    assert values(sampler) == pytest.approx({"cpu_pressure": 0.25, "io_pressure": 1.0, "memory_pressure": 0.0})
    assert sampler.missing() == {}


def test_a_kernel_without_pressure_says_what_it_would_need(machine: Machine) -> None:
    pressure(machine, "cpu", 5)
    missing = Pressure(machine.root).missing()
    assert missing.keys() == {"io_pressure", "memory_pressure"}
    assert "psi=1" in missing["io_pressure"]


def test_the_queue_is_without_ourselves(machine: Machine) -> None:
    machine.write("proc/stat", "cpu  1 2 3\nprocesses 100\nprocs_running 9\nprocs_blocked 1\n")
    assert values(RunQueue(machine.root)) == {"run_queue": 8}
    assert RunQueue(machine.root).missing() == {}


def test_another_system_has_no_queue(machine: Machine) -> None:
    assert values(RunQueue(machine.root)) == {}
    assert "only Linux" in RunQueue(machine.root).missing()["run_queue"]


def test_pools_without_their_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = {
        "user_api": "blas",
        "internal_api": "openblas",
        "num_threads": 64,
        "filepath": "/home/somebody/lib/libopenblas.so",
        "version": "0.3.31",
        "prefix": "libopenblas",
    }
    openmp = {"user_api": "openmp", "internal_api": "openmp", "num_threads": 2, "filepath": "/x", "version": None}
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: [pool, openmp])
    assert thread_pool_facts()["blas_pools"] == [
        {"api": "blas", "library": "openblas", "threads": 64, "version": "0.3.31"},
        {"api": "openmp", "library": "openmp", "threads": 2, "version": "unknown"},
    ]


def test_numpy_and_torch_of_this_machine_tell_their_pools() -> None:
    pytest.importorskip("numpy")
    pytest.importorskip("torch")
    found = thread_pool_facts()
    assert all(pool["threads"] >= 1 for pool in found["blas_pools"])
    assert "/" not in json.dumps(found)
