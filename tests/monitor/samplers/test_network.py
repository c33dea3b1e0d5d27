"""Network traffic counts each byte once."""

from collections import namedtuple

import pytest
from monitor.samplers.machine import Machine, values

from tb_bottleneck.monitor.samplers.io import Network

Io = namedtuple("Io", "bytes_recv bytes_sent")


def network(machine: Machine, before: dict[str, Io], after: dict[str, Io]) -> dict[str, float]:
    waiting = iter([before, after])
    sampler = Network(machine.root, lambda: next(waiting), machine.clock)
    assert values(sampler) == {}
    machine.now += 2.0
    return values(sampler)


def test_only_hardware_counts_where_there_is_any(machine: Machine) -> None:
    machine.write("sys/class/net/eth0/device/vendor")
    names = ("lo", "eth0", "docker0", "bond0")
    found = network(machine, {name: Io(0, 0) for name in names}, {name: Io(600, 60) for name in names})
    assert found == {"network_received": 300, "network_sent": 30}


def test_in_a_container_all_but_the_loopback_counts(machine: Machine) -> None:
    found = network(machine, {"lo": Io(0, 0), "eth0": Io(0, 0)}, {"lo": Io(900, 900), "eth0": Io(600, 60)})
    assert found == {"network_received": 300, "network_sent": 30}


def test_infiniband_counts_words_and_joins_in(machine: Machine) -> None:
    port = "sys/class/infiniband/mlx5_0/ports/1/counters"
    machine.write(f"{port}/port_rcv_data", "1000\n")
    machine.write(f"{port}/port_xmit_data", "N/A (no PMA)\n")
    sampler = Network(machine.root, lambda: {"eth0": Io(0, 0)}, machine.clock)
    values(sampler)
    machine.now += 1.0
    machine.write(f"{port}/port_rcv_data", "1500\n")
    assert values(sampler) == pytest.approx({"network_received": 2000, "network_sent": 0})


def test_no_network_is_missing_not_zero(machine: Machine) -> None:
    sampler = Network(machine.root, lambda: {"lo": Io(1, 1)})
    assert values(sampler) == {}
    assert sampler.missing().keys() == {"network_received", "network_sent"}
