"""Facts about the network that NCCL uses, from NCCL's own log, and about the InfiniBand and RoCE ports of the machine.

NCCL writes the log with NCCL_DEBUG=INFO, into the file that NCCL_DEBUG_FILE names (NCCL documentation, environment
variables). The lines are those of NCCL 2.18 to 2.28: src/transport/net_ib.cc, net_socket.cc, net.cc, p2p.cc and shm.cc;
src/misc/param.cc; src/init.cc. Addresses and names of hosts are left out.
"""

import os
import platform
import re
from collections import Counter
from pathlib import Path

MAX_BYTES = 1 << 20
"""Bytes that are read of a log. NCCL writes what is needed at its start."""
MAX_NAMES = 32
SETTINGS = ("NCCL_IB_DISABLE", "NCCL_NET", "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_SOCKET_IFNAME", "NCCL_IB_HCA")
"""The settings of the environment that choose a transport."""

_NETWORK = re.compile(r"NCCL INFO (?:Using network |Assigned NET plugin )(\w[\w ]*?)(?: to comm)?\s*$")
_DEVICES = re.compile(r"NCCL INFO NET/(IB|Socket) : Using (.*)")
_DEVICE = re.compile(r"\[\d+\]([\w.-]+(?::\d+/\w+)?)")
_CHANNEL = re.compile(r"NCCL INFO Channel \d+(?:/\d+)? : \S+ -> \S+ (?:\[\w+\] )?via (P2P|SHM|NET/[\w ]+?)(?:/|\s|$)")
_SETTING = re.compile(r"NCCL INFO (NCCL_\w+) set by environment to (\S+?)\.?\s*$")
_NODES = re.compile(r"NCCL INFO comm .* nNodes (\d+)")
_VERSION = re.compile(r"NCCL version (\d+\.\d+(?:\.\d+)?)")


def nccl_facts(text: str) -> dict[str, object]:
    """Returns what a log of NCCL says: `network` (such as IB or Socket), `devices` (interfaces or ports), `transports`
    (number of channels by transport), `settings`, `nodes` and `version`; without what is not in the log."""
    found: dict[str, object] = {}
    transports: Counter[str] = Counter()
    settings: dict[str, str] = {}
    devices: dict[str, list[str]] = {}
    for line in text.splitlines():
        if "NCCL" not in line:
            continue
        if channel := _CHANNEL.search(line):
            transports[channel[1]] += 1
        elif network := _NETWORK.search(line):
            found["network"] = network[1]
        elif listed := _DEVICES.search(line):
            names = _DEVICE.findall(listed[2].partition(";")[0])
            # The name of an interface is followed by its address: eth0:10.0.0.1<0>.
            devices[listed[1]] = [name if "/" in name else name.partition(":")[0] for name in names][:MAX_NAMES]
        elif (setting := _SETTING.search(line)) and setting[1] in SETTINGS:
            settings[setting[1]] = setting[2][:MAX_NAMES]
        elif nodes := _NODES.search(line):
            found["nodes"] = int(nodes[1])
        elif version := _VERSION.search(line):
            found["version"] = version[1]
    used = devices.get(str(found.get("network")), [])
    found |= {"devices": used} if used else {}
    return (
        found | ({"transports": dict(transports)} if transports else {}) | ({"settings": settings} if settings else {})
    )


def nccl_log() -> dict[str, object] | None:
    """Returns the facts of the log of this process; None if NCCL writes none."""
    path = os.environ.get("NCCL_DEBUG_FILE", "")
    path = path.replace("%h", platform.node().partition(".")[0]).replace("%p", str(os.getpid()))
    if not path or not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return nccl_facts(file.read(MAX_BYTES).decode("utf-8", "replace")) or None


def active_ports(root: Path = Path("/")) -> list[str] | None:
    """Returns the active InfiniBand and RoCE ports, such as "mlx5_0:1, InfiniBand, 400 Gb/s" (Linux documentation,
    ABI/stable/sysfs-class-infiniband); None if there are none."""
    ports = []
    for port in sorted((root / "sys/class/infiniband").glob("*/ports/*"))[:MAX_NAMES]:
        try:
            state, layer, rate = ((port / name).read_text().strip() for name in ("state", "link_layer", "rate"))
        except OSError:
            continue
        if "ACTIVE" in state:
            kind = "RoCE" if layer == "Ethernet" else layer
            ports.append(f"{port.parent.parent.name}:{port.name}, {kind}, {rate.partition(' ')[0]} Gb/s")
    return ports or None
