"""Facts from NCCL's log, whose lines are written after its public source, and from the ports of a machine."""

import os
import platform

import pytest

from tb_bottleneck.monitor.facts.nccl import active_ports, nccl_facts, nccl_log

P = "node7:512:530 [0] NCCL INFO "
IB = f"{P}NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.7<0>\n"
ROCE = f"{P}NET/IB : Using [0]mlx5_2:1/RoCE [RO]; OOB eth0:10.0.0.7<0>\n"
SOCKET = f"{P}NET/Socket : Using [0]eth0:10.0.0.7<0> [1]ib0:10.1.0.7<0>\n"
NONE = f"{P}NET/IB : No device found.\n"


def channels(*ways: str) -> str:
    return "".join(f"{P}Channel {at:02}/0 : {at}[{at}] -> {at + 1}[0] {way}\n" for at, way in enumerate(ways))


@pytest.mark.parametrize(
    ("log", "found"),
    [
        ("", {}),
        (f"{P}NCCL version 2.21.5+cuda12.4\n", {"version": "2.21.5"}),
        (f"{IB}{P}Using network IB\n", {"network": "IB", "devices": ["mlx5_0:1/IB", "mlx5_1:1/IB"]}),
        (f"{ROCE}{P}Using network IB\n", {"network": "IB", "devices": ["mlx5_2:1/RoCE"]}),
        (f"{NONE}{SOCKET}{P}Using network Socket\n", {"network": "Socket", "devices": ["eth0", "ib0"]}),
        (f"{SOCKET}{P}Assigned NET plugin Socket to comm\n", {"network": "Socket", "devices": ["eth0", "ib0"]}),
        (f"{P}Using network AWS Libfabric\n", {"network": "AWS Libfabric"}),
        (channels("via P2P/CUMEM/read", "via P2P/IPC", "via SHM/direct/direct"), {"transports": {"P2P": 2, "SHM": 1}}),
        (channels("[send] via NET/IB/0/GDRDMA", "[receive] via NET/IB/1"), {"transports": {"NET/IB": 2}}),
        (channels("[send] via NET/Socket/0"), {"transports": {"NET/Socket": 1}}),
        (
            f"{P}NCCL_IB_DISABLE set by environment to 1.\n{P}NCCL_SOCKET_IFNAME set by environment to eth0\n",
            {"settings": {"NCCL_IB_DISABLE": "1", "NCCL_SOCKET_IFNAME": "eth0"}},
        ),
        (f"{P}comm 0x55d0 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0\n", {"nodes": 2}),
        (f"{P}NCCL_DEBUG_FILE set by environment to /home/a/b\nnot a line of the log\n", {}),
    ],
)
def test_a_log_says_which_network_is_used(log, found):
    assert nccl_facts(log) == found


def test_no_address_or_host_is_kept():
    text = str(nccl_facts(IB + SOCKET + f"{P}Using network Socket\n" + channels("via P2P/IPC")))
    assert "10." not in text
    assert "node7" not in text


def test_the_log_of_this_process_is_read(tmp_path, monkeypatch):
    name = f"nccl.{platform.node().partition('.')[0]}.{os.getpid()}.log"
    (tmp_path / name).write_text(f"{P}Using network Socket\n")
    monkeypatch.setenv("NCCL_DEBUG_FILE", str(tmp_path / "nccl.%h.%p.log"))
    assert nccl_log() == {"network": "Socket"}
    monkeypatch.setenv("NCCL_DEBUG_FILE", str(tmp_path / "gone"))
    assert nccl_log() is None


def test_active_ports_are_listed(tmp_path):
    for name, state, layer in (("mlx5_0", "4: ACTIVE", "InfiniBand"), ("mlx5_1", "1: DOWN", "InfiniBand"),
                               ("mlx5_2", "4: ACTIVE", "Ethernet"), ("mlx5_3", "", "")):  # fmt: skip
        port = tmp_path / "sys/class/infiniband" / name / "ports/1"
        port.mkdir(parents=True)
        if state:
            (port / "state").write_text(f"{state}\n")
            (port / "link_layer").write_text(f"{layer}\n")
            (port / "rate").write_text("400 Gb/sec (4X NDR)\n")
    assert active_ports(tmp_path) == ["mlx5_0:1, InfiniBand, 400 Gb/s", "mlx5_2:1, RoCE, 400 Gb/s"]
    assert active_ports(tmp_path / "none") is None
