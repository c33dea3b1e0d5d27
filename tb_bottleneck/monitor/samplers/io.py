"""Samplers of disks and of the network, the conversion of counters to rates, and a limit for expensive readings."""

import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import psutil

from tb_bottleneck.monitor.samplers.sampler import Reading

Key = TypeVar("Key", bound=Hashable)
Clock = Callable[[], float]


class Rates:
    """Converts increasing counters to rates: the increase since the last reading, per second. Not thread-safe."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._last: dict[Hashable, tuple[float, float]] = {}

    def per_second(self, counters: Mapping[Key, float]) -> dict[Key, float]:
        """Returns the rate of each counter in `counters`, in the counter's unit per second.

        A counter has no rate at its first reading, or if its value has decreased because the counter was reset or
        overflowed. A counter that is missing in `counters` is forgotten."""
        now = self._clock()
        rates = {}
        for key, value in counters.items():
            since, before = self._last.get(key, (now, value))
            if now > since and value >= before:
                rates[key] = (value - before) / (now - since)
        self._last = {key: (now, value) for key, value in counters.items()}
        return rates


_SECTOR_BYTES = 512  # independent of the device's own sector size
_MS_PER_S = 1e3
_NAMES = ("disk_read", "disk_written", "disk_busy")
_NO_DISK = "no hardware block device was found in /proc/diskstats"
_NOT_COUNTED = "the system does not count the busy time of its disks"


class Disks:
    """Measures the block devices: bytes read and written per second, and the utilisation of the busiest device.

    On Linux, the figures come from /proc/diskstats (Linux documentation, admin-guide/iostats). Only hardware devices
    count: a mapped, loop or RAM device would count the same bytes twice, or bytes of no disk. On other systems, the
    figures come from psutil. Network file systems are not included, because their bytes are network traffic."""

    every_s = 1.0

    def __init__(self, root: Path = Path("/"), clock: Clock = time.monotonic) -> None:
        self._root = root
        self._rates = Rates(clock)

    def read(self) -> Iterator[Reading]:
        """Yields the bytes read and written per second, and the utilisation (0 to 1); nothing at the first reading."""
        rates = self._rates.per_second(self._counters())
        for name in ("disk_read", "disk_written"):
            parts = [rate for (_, kind), rate in rates.items() if kind == name]
            if parts:
                yield Reading(name, sum(parts))
        # Some systems add up the times of concurrent requests, so the share is limited to 1.
        busy = [min(rate / _MS_PER_S, 1.0) for (_, kind), rate in rates.items() if kind == "disk_busy"]
        if busy:
            yield Reading("disk_busy", max(busy))

    def missing(self) -> Mapping[str, str]:
        """Returns {signal: reason} for the signals that no device has."""
        available = {kind for _, kind in self._counters()}
        because = _NOT_COUNTED if available else _NO_DISK
        return {name: because for name in _NAMES if name not in available}

    def close(self) -> None:
        """Does nothing."""

    def _counters(self) -> dict[tuple[str, str], float]:
        """Returns a dict: (device, signal) -> value of the counter, in bytes or, for the busy time, in milliseconds."""
        try:
            lines = (self._root / "proc/diskstats").read_text().splitlines()
        except OSError:
            return _psutil_counters()
        counters = {}
        for words in (line.split() for line in lines):
            if len(words) < 13 or not (self._root / "sys/block" / words[2] / "device").exists():
                continue
            counters[words[2], "disk_read"] = float(words[5]) * _SECTOR_BYTES
            counters[words[2], "disk_written"] = float(words[9]) * _SECTOR_BYTES
            counters[words[2], "disk_busy"] = float(words[12])
        return counters


def _psutil_counters() -> dict[tuple[str, str], float]:
    counters = {}
    for name, disk in (psutil.disk_io_counters(perdisk=True) or {}).items():
        counters[name, "disk_read"] = float(disk.read_bytes)
        counters[name, "disk_written"] = float(disk.write_bytes)
        if hasattr(disk, "busy_time"):
            counters[name, "disk_busy"] = float(disk.busy_time)
    return counters


_RECEIVED, _SENT = "network_received", "network_sent"
_INFINIBAND = {_RECEIVED: "port_rcv_data", _SENT: "port_xmit_data"}
_WORD_BYTES = 4
_NO_INTERFACE = "no network interface except the loopback was found"


def _interfaces() -> Mapping[str, Any]:
    return psutil.net_io_counters(pernic=True)


class Network:
    """Measures the network traffic of the whole machine (or of the container's own network) in bytes per second.

    The traffic of all network interfaces is added up, plus the traffic of InfiniBand ports, which no interface counts.
    If some interfaces are hardware, only those are added up, because a bridge or tunnel counts the same bytes again. In
    a container no interface is hardware, and all except the loopback are added up. InfiniBand counts words of four
    bytes (Linux documentation, ABI/stable/sysfs-class-infiniband)."""

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
        """Yields the bytes per second received and sent; nothing at the first reading."""
        rates = self._rates.per_second(self._counters())
        for name in (_RECEIVED, _SENT):
            parts = [rate for (_, kind), rate in rates.items() if kind == name]
            if parts:
                yield Reading(name, sum(parts))

    def missing(self) -> Mapping[str, str]:
        """Returns {signal: reason} for both signals if the machine has no network interface, otherwise {}."""
        return {} if self._counters() else dict.fromkeys((_RECEIVED, _SENT), _NO_INTERFACE)

    def close(self) -> None:
        """Does nothing."""

    def _counters(self) -> dict[tuple[str, str], float]:
        """Returns a dict: (interface or port, signal) -> number of bytes since the counter's start."""
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


Value = TypeVar("Value")

LEAST_S = 30.0
"""Minimum time in seconds between two expensive readings."""
SHARE = 1e-3
"""Share of the time that expensive readings may take. While the kernel sums the pages of a process, the process can
neither map nor unmap memory. This took 1 to 2 ms for 3 GB in huge pages, and takes more with small pages."""


class Seldom:
    """Calls an expensive function at most every LEAST_S seconds, and so rarely that it takes at most the fraction SHARE
    of the time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next: float | None = None

    def read(self, function: Callable[[], Value]) -> Value | None:
        """Calls `function` and returns its result, or returns None if the next call is not due yet."""
        began = self._clock()
        if self._next is not None and began < self._next:
            return None
        try:
            return function()
        finally:
            self._next = began + max(LEAST_S, (self._clock() - began) / SHARE)
