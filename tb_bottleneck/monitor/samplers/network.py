"""Network traffic of the machine: network interfaces, and InfiniBand ports, which no interface counts.

If some interfaces are hardware, only those are added up, because a bridge or tunnel counts the same bytes again. In a
container no interface is hardware, and all except the loopback are added up. InfiniBand counts words of four bytes
(Linux documentation, ABI/stable/sysfs-class-infiniband).
"""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from tb_bottleneck.monitor.samplers.rates import Clock, Rates
from tb_bottleneck.monitor.samplers.sampler import Reading

_RECEIVED, _SENT = "network_received", "network_sent"
_INFINIBAND = {_RECEIVED: "port_rcv_data", _SENT: "port_xmit_data"}
_WORD_BYTES = 4
_NO_INTERFACE = "no network interface except the loopback was found"


def _interfaces() -> Mapping[str, Any]:
    return psutil.net_io_counters(pernic=True)


class Network:
    """Rates since the last reading, of the whole machine (or of the container's own network)."""

    every_s = 1.0

    def __init__(
        self,
        root: Path = Path("/"),
        interfaces: Callable[[], Mapping[str, Any]] = _interfaces,
        clock: Clock = time.monotonic,
    ) -> None:
        self._root = root
        self._interfaces = interfaces
        self._rates = Rates(clock)

    def read(self) -> Iterator[Reading]:
        """Yields nothing at the first reading."""
        rates = self._rates.per_second(self._counters())
        for name in (_RECEIVED, _SENT):
            parts = [rate for (_, kind), rate in rates.items() if kind == name]
            if parts:
                yield Reading(name, sum(parts))

    def missing(self) -> Mapping[str, str]:
        """Returns both signals if the machine has no network interface."""
        return {} if self._counters() else dict.fromkeys((_RECEIVED, _SENT), _NO_INTERFACE)

    def close(self) -> None:
        """Does nothing."""

    def _counters(self) -> dict[tuple[str, str], float]:
        """Returns bytes by (interface or port, signal)."""
        every = {name: io for name, io in self._interfaces().items() if not name.lower().startswith("lo")}
        hardware = {name: io for name, io in every.items() if (self._root / "sys/class/net" / name / "device").exists()}
        counters = {}
        for name, io in (hardware or every).items():
            counters[name, _RECEIVED], counters[name, _SENT] = float(io.bytes_recv), float(io.bytes_sent)
        for port in (self._root / "sys/class/infiniband").glob("*/ports/*/counters"):
            for kind, file in _INFINIBAND.items():
                try:
                    counters[str(port), kind] = float((port / file).read_text()) * _WORD_BYTES
                except (OSError, ValueError):
                    continue  # the counters of a port without a link cannot be read
        return counters
