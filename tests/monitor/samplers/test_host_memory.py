"""The proportional and the pinned memory of the process, and that expensive readings are seldom."""

import os
from pathlib import Path
from types import SimpleNamespace

from monitor.machine import Machine, values

from tb_bottleneck.monitor import accelerator
from tb_bottleneck.monitor.samplers.host_memory import PinnedMemory, ProcessMemory
from tb_bottleneck.monitor.samplers.io import LEAST_S, SHARE, Seldom

ROLLUP = "55-7ff ---p 00000000 00:00 0 [rollup]\nRss:  900 kB\nPss:  500 kB\nPss_Dirty: 400 kB\nShared_Clean: 9 kB\n"


def test_the_proportional_size_is_read_seldom(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.write(f"proc/{os.getpid()}/smaps_rollup", ROLLUP)
    sampler = ProcessMemory(machine.root, machine.clock)
    first = values(sampler)
    assert first["process_pss"] == 500 * 1024
    assert first["process_memory"] > 1 << 20
    machine.now += LEAST_S - 1
    assert "process_pss" not in values(sampler)
    machine.now += 1
    assert "process_pss" in values(sampler)
    assert not sampler.missing()


def test_an_expensive_reading_is_made_less_often(tmp_path: Path) -> None:
    machine = Machine(tmp_path)

    def slow() -> int:
        machine.now += 0.2
        return 1

    seldom = Seldom(machine.clock)
    assert seldom.read(slow) == 1
    machine.now += 0.2 / SHARE - 1
    assert seldom.read(slow) is None
    machine.now += 1
    assert seldom.read(slow) == 1


def test_pinned_memory_is_counted_once_a_device_is_in_use(monkeypatch) -> None:
    stats = {"allocated_bytes.current": 4096, "allocated_bytes.peak": 9999}
    cuda = SimpleNamespace(is_initialized=lambda: False, host_memory_stats=lambda: stats)
    monkeypatch.setitem(accelerator.sys.modules, "torch", SimpleNamespace(cuda=cuda))
    sampler = PinnedMemory()
    assert values(sampler) == {}
    assert "pinned_memory" in sampler.missing()
    cuda.is_initialized = lambda: True
    assert values(sampler) == {"pinned_memory": 4096}
    assert not sampler.missing()
    del cuda.host_memory_stats  # torch before 2.6
    assert values(sampler) == {}
