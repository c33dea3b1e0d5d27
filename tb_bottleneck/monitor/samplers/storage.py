"""What the block devices do: bytes read and written, and how busy the busiest one is.

On Linux from /proc/diskstats (Linux documentation, admin-guide/iostats), of devices that have hardware behind them:
a mapped, loop or RAM device would count the same bytes twice, or none of a disk. Elsewhere what psutil adds up. Left
out: files on a network; their bytes are network traffic.
"""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from tb_bottleneck.monitor.samplers.rates import Clock, Rates
from tb_bottleneck.monitor.samplers.sampler import Reading

_SECTOR_BYTES = 512  # whatever the device's own sectors are
_MS_PER_S = 1e3
_NAMES = ("disk_read", "disk_written", "disk_busy")
_NO_DISK = "no block device with hardware behind it was found in /proc/diskstats"
_NOT_COUNTED = "the system does not count how long its disks are busy"


class Disks:
    """Rates since the reading before."""

    every_s = 1.0

    def __init__(self, root: Path = Path("/"), clock: Clock = time.monotonic) -> None:
        self._root = root
        self._rates = Rates(clock)

    def read(self) -> Iterator[Reading]:
        """The first reading gives nothing."""
        rates = self._rates.per_second(self._counters())
        for name in ("disk_read", "disk_written"):
            found = [rate for (_, kind), rate in rates.items() if kind == name]
            if found:
                yield Reading(name, sum(found))
        # Where many requests are under way at once, some systems count each one's time.
        busy = [min(rate / _MS_PER_S, 1.0) for (_, kind), rate in rates.items() if kind == "disk_busy"]
        if busy:
            yield Reading("disk_busy", max(busy))

    def missing(self) -> Mapping[str, str]:
        """What no device is counted for."""
        there = {kind for _, kind in self._counters()}
        because = _NOT_COUNTED if there else _NO_DISK
        return {name: because for name in _NAMES if name not in there}

    def close(self) -> None:
        """Nothing is open."""

    def _counters(self) -> dict[tuple[str, str], float]:
        """Counters by (device, signal): bytes and milliseconds."""
        try:
            lines = (self._root / "proc/diskstats").read_text().splitlines()
        except OSError:
            return _counted_by_psutil()
        found = {}
        for words in (line.split() for line in lines):
            if len(words) < 13 or not (self._root / "sys/block" / words[2] / "device").exists():
                continue
            found[words[2], "disk_read"] = float(words[5]) * _SECTOR_BYTES
            found[words[2], "disk_written"] = float(words[9]) * _SECTOR_BYTES
            found[words[2], "disk_busy"] = float(words[12])
        return found


def _counted_by_psutil() -> dict[tuple[str, str], float]:
    found = {}
    for name, disk in (psutil.disk_io_counters(perdisk=True) or {}).items():
        found[name, "disk_read"] = float(disk.read_bytes)
        found[name, "disk_written"] = float(disk.write_bytes)
        if hasattr(disk, "busy_time"):
            found[name, "disk_busy"] = float(disk.busy_time)
    return found
