"""Traffic of the machine's network: Ethernet and its kin, and InfiniBand, whose traffic no interface counts.

Where some interfaces have hardware behind them only those are added up, because a bridge or a tunnel counts the same
bytes again; in a container none has, and all but the loopback are. InfiniBand counts words of four bytes (Linux
documentation, ABI/stable/sysfs-class-infiniband).
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
_BECAUSE = "no network interface but the loopback was found"


def _interfaces() -> Mapping[str, Any]:
    return psutil.net_io_counters(pernic=True)


class Network:
    """Rates since the reading before, of the whole machine (or of the container's own network)."""

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
        """The first reading gives nothing."""
        rates = self._rates.per_second(self._counters())
        for name in (_RECEIVED, _SENT):
            found = [rate for (_, kind), rate in rates.items() if kind == name]
            if found:
                yield Reading(name, sum(found))

    def missing(self) -> Mapping[str, str]:
        """Both, on a machine without a network."""
        return {} if self._counters() else dict.fromkeys((_RECEIVED, _SENT), _BECAUSE)

    def close(self) -> None:
        """Nothing is open."""

    def _counters(self) -> dict[tuple[str, str], float]:
        """Bytes by (interface or port, signal)."""
        there = {name: io for name, io in self._interfaces().items() if not name.lower().startswith("lo")}
        hard = {name: io for name, io in there.items() if (self._root / "sys/class/net" / name / "device").exists()}
        found = {}
        for name, io in (hard or there).items():
            found[name, _RECEIVED], found[name, _SENT] = float(io.bytes_recv), float(io.bytes_sent)
        for port in (self._root / "sys/class/infiniband").glob("*/ports/*/counters"):
            for kind, file in _INFINIBAND.items():
                try:
                    found[str(port), kind] = float((port / file).read_text()) * _WORD_BYTES
                except (OSError, ValueError):
                    continue  # a port without a link refuses to tell
        return found
