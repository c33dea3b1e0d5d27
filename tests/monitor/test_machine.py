"""What the samplers and the facts read from the files of a machine: one table over fake machines.

A row has a machine's files at one or more moments, and what is read at each. The machines have control groups of both
versions, disks, networks, and counters that begin anew, or lack what is asked for.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from monitor.machine import Machine, values

from tb_bottleneck.monitor.facts import cpu
from tb_bottleneck.monitor.samplers.cpu import Cores, Pressure, Quota, RunQueue, UsableCores
from tb_bottleneck.monitor.samplers.host_memory import HostMemory, ProcessMemory, SharedMemory
from tb_bottleneck.monitor.samplers.io import Disks, Network

MB = 1 << 20
ME = os.getpid()
Files = dict[str, str]


class Row(NamedTuple):
    """`moments`: seconds since the last one, the files written, and what is read then (None: not checked).

    `missing`: the signals that the sampler calls missing at the end.
    """

    about: str
    sampler: Callable[[Machine], Any]
    moments: tuple[tuple[float, Files, Mapping[str, float] | None], ...]
    missing: Iterable[str] = ()


# --- Files ---


def group(path: str, **files: str) -> Files:
    """A control group of version 2 whose path in /proc is `path`; `files` by name, with `_` in place of `.`."""
    known = {f"sys/fs/cgroup{path}/{name.replace('_', '.', 1)}": text for name, text in files.items()}
    return {"proc/self/cgroup": f"0::{path}\n", **known}


def stat(folder: str, periods: int, throttled: int, time: str) -> Files:
    text = f"usage_usec 5\nnr_periods {periods}\nnr_throttled {throttled}\n{time}\n"
    return {f"sys/fs/cgroup/{folder}cpu.stat": text}


def pressure(**total_us: int) -> Files:
    text = "some avg10=1.00 avg60=0.20 total={}\nfull avg10=0.00 avg60=0.00 total=999999999\n"
    return {f"proc/pressure/{kind}": text.format(total) for kind, total in total_us.items()}


def disks(**counted: tuple[int, int, int]) -> Files:
    """/proc/diskstats: sectors read, sectors written, busy milliseconds by name."""
    lines = (
        f" 254 0 {name} 7 1 {read} 8 5 7 {written} 9 0 {busy} 19 7 3\n"
        for name, (read, written, busy) in counted.items()
    )
    return {"proc/diskstats": "".join(lines)}


def scheduled(text: str) -> Files:
    return {f"proc/{ME}/schedstat": text}


# --- Samplers ---


def cores(*readings: list[dict[str, float]]) -> Callable[[Machine], Cores]:
    """Readings of the seconds of each core; `guest` and `interrupt` lie within `user` and `system`."""
    idle = dict.fromkeys(("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest"), 0.0)
    waiting = iter([[SimpleNamespace(**{**idle, **core}) for core in reading] for reading in readings])
    return lambda machine: Cores(lambda: next(waiting))


def network(*readings: Mapping[str, tuple[int, int]]) -> Callable[[Machine], Network]:
    waiting = chain(readings, repeat(readings[-1]))
    io = lambda counted: SimpleNamespace(bytes_recv=counted[0], bytes_sent=counted[1])  # noqa: E731
    return lambda machine: Network(
        machine.root, lambda: {name: io(counted) for name, counted in next(waiting).items()}, machine.clock
    )


def memory(machine: Machine) -> HostMemory:
    return HostMemory(lambda: SimpleNamespace(total=1000 * MB, available=700 * MB, used=900 * MB), machine.root)


def busy(cores: float, top: float) -> dict[str, float]:
    return {"cpu_busy_cores": cores, "cpu_top_core": top}


def second(expected: dict[str, float], seconds: float = 1, files: Files | None = None) -> Any:
    """The first reading gives nothing, the second what is expected."""
    return ((0, files or {}, {}), (seconds, {}, expected))


WHOLE = {"host_memory_used": 0.3, "host_memory_available": 700 * MB, "host_memory_total": 1000 * MB}
SHARED = ("shared_memory_used", "shared_memory_total")
BOTH_DISKS = {f"sys/block/{name}/device/model": "" for name in ("vda", "nvme0n1")} | {"sys/block/dm-0/dm/name": ""}
FOUR = ("vda", "vda1", "nvme0n1", "dm-0")
PORT = "sys/class/infiniband/mlx5_0/ports/1/counters"
THROTTLED = ("quota_throttled_total", "quota_throttled_periods")
DISK = ("disk_read", "disk_written", "disk_busy")

ROWS = [
    # Busy cores: readings are the seconds of each core.
    Row("one core is busy and one half",
        cores([{}, {}], [{"user": 0.5, "system": 0.5}, {"user": 0.25, "softirq": 0.25,
            "idle": 0.5}]), second(busy(1.5, 1.0))),
    Row("waiting for storage and stolen time is no work", cores([{}], [{"user": 0.2, "iowait": 0.4, "steal": 0.4}]),
        second(busy(0.2, 0.2))),
    Row("time of guests is counted once", cores([{}], [{"user": 1.0, "guest": 1.0}]), second(busy(1.0, 1.0))),
    Row("on Windows, interrupts lie within system time",
        cores([{}], [{"user": 0.25, "system": 0.25, "idle": 0.5, "interrupt": 0.1,
            "dpc": 0.1}]), second(busy(0.5, 0.5))),
    Row("a core that came begins anew", cores([{}], [{"user": 1}, {"user": 1}], [{"user": 2}, {"user": 1, "idle": 1}]),
        ((0, {}, {}), (1, {}, {}), (1, {}, busy(1.0, 1.0)))),
    Row("readings within one tick give nothing", cores([{"user": 1}], [{"user": 1}]), second({})),
    Row("usable cores are the quota's where that is less", lambda m: UsableCores(m.root),
        ((0, group("/job", cpu_max="50000 100000\n"), {"cpu_usable_cores": 0.5}),)),
    # Throttling by the quota.
    Row("version 2 adds the parents", lambda m: Quota(m.root),
        ((0, group("/slice/job") | stat("slice/job/", 10, 4, "throttled_usec 3000") | stat("slice/", 0, 0,
            "throttled_usec 500")
          | {"sys/fs/cgroup/cpu.stat": "usage_usec 7\nuser_usec 5\n"}, {THROTTLED[0]: 3_500_000}),
         (1, stat("slice/job/", 20, 9, "throttled_usec 4000"), {THROTTLED[0]: 4_500_000, THROTTLED[1]: 0.5}))),
    *(Row(f"version 1 counts nanoseconds in {mount}", lambda m: Quota(m.root),
          ((0, {"proc/self/cgroup": "4:memory:/job\n3:cpu,cpuacct:/job\n"}
            | stat(f"{mount}/job/", 5, 1, "throttled_time 12345"), {THROTTLED[0]: 12345}),))
      for mount in ("cpu", "cpu,cpuacct")),
    Row("in a container the mount's root is the own group", lambda m: Quota(m.root),
        ((0, group("/docker/3f2a") | stat("", 5, 1, "throttled_usec 7"), {THROTTLED[0]: 7000}),)),
    Row("without a quota there are no periods", lambda m: Quota(m.root),
        ((0, {"proc/self/cgroup": "1:cpu:/\n"} | stat("cpu/", 0, 0, "throttled_time 0"),
            {THROTTLED[0]: 0}),), THROTTLED[1:]),
    Row("without control groups both are missing", lambda m: Quota(m.root), ((0, {}, {}),), THROTTLED),
    Row("a path that leads out is not followed", lambda m: Quota(m.root),
        ((0, {"proc/self/cgroup": "0::/../../job\n", "sys/fs/cgroup/x": ""} | stat("../../job/", 1, 1,
            "throttled_usec 1"), {}),),
        THROTTLED),
    # Pressure, and the run queue.
    Row("waiting microseconds become a share of time", lambda m: Pressure(m.root, m.clock),
        ((0, pressure(cpu=1_000_000, io=1_000_000, memory=1_000_000), {}),
         (2, pressure(cpu=1_500_000, io=9_000_000), {"cpu_pressure": 0.25, "io_pressure": 1.0,
             "memory_pressure": 0.0}))),
    Row("a kernel may lack pressure", lambda m: Pressure(m.root), ((0, pressure(cpu=5), {}),), ("io_pressure",
        "memory_pressure")),
    Row("the queue is without ourselves", lambda m: RunQueue(m.root),
        ((0, {"proc/stat": "cpu  1 2 3\nprocesses 100\nprocs_running 9\nprocs_blocked 1\n"}, {"run_queue": 8}),)),
    Row("another system has no queue", lambda m: RunQueue(m.root), ((0, {}, {}),), ("run_queue",)),
    # Disks.
    Row("two disks; a partition and a mapping do not count", lambda m: Disks(m.root, m.clock),
        ((0, BOTH_DISKS | disks(**dict.fromkeys(FOUR, (0, 0, 0))), {}),
         (2, disks(vda=(2000, 500, 200), vda1=(2000, 500, 200), **{"nvme0n1": (2000, 500, 1500),
             "dm-0": (2000, 500, 1700)}),
          {"disk_read": 2000 * 512, "disk_written": 500 * 512, "disk_busy": 0.75}))),
    Row("a disk is busy at most all the time", lambda m: Disks(m.root, m.clock),
        ((0, BOTH_DISKS | disks(vda=(0, 0, 0)), {}),
         (1, disks(vda=(0, 0, 5000)), {"disk_read": 0, "disk_written": 0, "disk_busy": 1.0}))),
    Row("a machine without disks says so", lambda m: Disks(m.root), ((0, disks(loop0=(0, 0, 0)), {}),), DISK),
    # Networks.
    Row("only hardware counts where there is any",
        network(dict.fromkeys(("lo", "eth0", "docker0", "bond0"), (0, 0)), dict.fromkeys(("lo", "eth0", "docker0",
            "bond0"), (600, 60))),
        second({"network_received": 300, "network_sent": 30}, 2, {"sys/class/net/eth0/device/vendor": ""})),
    Row("in a container all but the loopback counts",
        network({"lo": (0, 0), "eth0": (0, 0)}, {"lo": (900, 900), "eth0": (600, 60)}),
        second({"network_received": 300, "network_sent": 30}, 2)),
    Row("InfiniBand counts words of four bytes", network({"eth0": (0, 0)}),
        ((0, {f"{PORT}/port_rcv_data": "1000\n", f"{PORT}/port_xmit_data": "N/A (no PMA)\n"}, {}),
         (1, {f"{PORT}/port_rcv_data": "1500\n"}, {"network_received": 2000, "network_sent": 0}))),
    Row("no network is missing, not zero", network({"lo": (1, 1)}), ((0, {}, {}),), ("network_received",
        "network_sent")),
    # Memory: caches that would give way are not in use.
    Row("without control groups the machine's memory counts", memory, ((0, {}, WHOLE),)),
    *(Row(f"a control group of version {version} with less memory left counts", memory,
          ((0, {"proc/self/cgroup": listed, f"{folder}/{limit}": f"{100 * MB}\n", f"{folder}/{used}": f"{90 * MB}\n",
                f"{folder}/memory.stat": f"anon 5\ninactive_file {30 * MB}\n"},
            {"host_memory_used": 0.6, "host_memory_available": 40 * MB, "host_memory_total": 100 * MB}),))
      for version, listed, folder, limit, used in (
          (1, "5:memory:/job\n", "sys/fs/cgroup/memory/job", "memory.limit_in_bytes", "memory.usage_in_bytes"),
          (2, "0::/job\n", "sys/fs/cgroup/job", "memory.max", "memory.current"))),
    *(Row(f"a control group whose limit is {limit} does not count", memory,
          ((0, group("/job", memory_max=limit, memory_current="5", memory_stat=""), WHOLE),))
      for limit in ("max", str(1 << 62), "damaged")),
    Row("shared memory has its use and its size",
        lambda m: SharedMemory(m.root, lambda _: SimpleNamespace(f_blocks=100, f_bfree=40, f_bavail=40, f_frsize=4096)),
        ((0, {"dev/shm/x": ""}, {"shared_memory_used": 60 * 4096, "shared_memory_total": 100 * 4096}),)),
    Row("a system without shared memory says so", lambda m: SharedMemory(m.root), ((0, {}, {}),), SHARED),
    Row("the proportional size needs a file", lambda m: ProcessMemory(m.root), ((0, {}, None),), ("process_pss",)),
]  # fmt: skip

QUOTAS: list[tuple[str, Files, list[float]]] = [
    ("version 2 in cores", group("/job", cpu_max="250000 100000\n"), [2.5]),
    ("version 2 without a limit", group("/", cpu_max="max 100000\n"), []),
    ("a parent's quota holds too", group("/slice/job", cpu_max="max 100000\n")
     | {"sys/fs/cgroup/slice/cpu.max": "400000 100000\n", "sys/fs/cgroup/cpu.max": "800000 100000\n"}, [4.0, 8.0]),
    ("a path that only the host sees", group("/docker/3f2a") | {"sys/fs/cgroup/cpu.max": "150000 100000\n"}, [1.5]),
    *((f"version 1 under the mount {mount}", {"proc/self/cgroup": "4:memory:/job\n2:cpu,cpuacct:/job\n"}
       | {f"sys/fs/cgroup/{mount}/job/cpu.cfs_{key}_us": text for key, text in (("quota", "300000\n"), ("period",
           "100000\n"))},
       [3.0]) for mount in ("cpu", "cpu,cpuacct")),
    ("version 1: minus one is no limit", {"proc/self/cgroup": "1:cpu:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
      "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, []),
    *((f"not a quota: {text!r}", group("/", cpu_max=text), []) for text in ("", "many", "12", "0 100000", "5 0x",
        "1 2 3")),
    ("a path that climbs out is not followed", {"proc/self/cgroup": "0::/../../job\n",
      "sys/fs/cgroup/cpu.max": "200000 100000\n", "sys/job/cpu.max": "100000 100000\n"}, [2.0]),
    ("a system without control groups", {}, []),
]  # fmt: skip


@pytest.mark.parametrize(("about", "files", "quotas"), QUOTAS, ids=[about for about, _, _ in QUOTAS])
def test_quotas_and_the_cores_that_they_leave(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, about: str, files: Files, quotas: list[float]
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(3)), raising=False)
    machine.add(files)
    assert list(cpu.cgroup_quotas(machine.root)) == quotas
    usable = cpu.usable_cores(machine.root)
    assert usable == min(3, *quotas, 3)
    assert isinstance(usable, int) == (usable == int(usable))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.about)
def test_a_machine_is_read_as_its_files_say(machine: Machine, row: Row) -> None:
    machine.add(row.moments[0][1])
    sampler = row.sampler(machine)
    for seconds, files, expected in row.moments:
        machine.now += seconds
        machine.add(files)
        found = values(sampler)
        assert expected is None or found == pytest.approx(expected)
    assert sampler.missing().keys() == set(row.missing)
    assert all(sampler.missing().values()), "each reason is a sentence"
