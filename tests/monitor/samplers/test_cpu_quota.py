"""Throttling by the CPU quota, with both versions of control groups, including parents."""

import pytest
from monitor.samplers.machine import Machine, values

from tb_bottleneck.monitor.samplers.cpu import Quota


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
