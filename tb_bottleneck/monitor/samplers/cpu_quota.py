"""Throttling of this process by its CPU quota, from `cpu.stat` of its control group and every parent. Linux only.

Version 2 counts `throttled_usec`, version 1 `throttled_time` in nanoseconds. Both are sums over the cores, so they can
grow faster than time (Linux documentation, scheduler/sched-bwc).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from tb_bottleneck.base.text import NS_PER_US
from tb_bottleneck.monitor.facts.cgroups import cpu_groups
from tb_bottleneck.monitor.samplers.sampler import Reading

_TOTAL, _PERIODS = "quota_throttled_total", "quota_throttled_periods"
_NO_GROUP = "no control group with a CPU controller was found for this process in /proc/self/cgroup and /sys/fs/cgroup"
_NO_QUOTA = "this process has no CPU quota, so it has no quota periods"
_KEYS = ("nr_periods", "nr_throttled", "throttled_usec", "throttled_time")


class Quota:
    """Throttled time, and the share of quota periods with throttling."""

    every_s = 1.0

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._last: dict[str, float] = {}

    def read(self) -> Iterator[Reading]:
        """Yields the total, and from the second reading on the share of periods."""
        counted = self._counted()
        if not counted:
            return
        last, self._last = self._last, counted
        yield Reading(_TOTAL, counted["ns"])
        periods = counted["nr_periods"] - last.get("nr_periods", counted["nr_periods"])
        throttled = counted["nr_throttled"] - last.get("nr_throttled", counted["nr_throttled"])
        if periods > 0 and throttled >= 0:
            yield Reading(_PERIODS, min(throttled / periods, 1.0))

    def missing(self) -> Mapping[str, str]:
        """Returns both signals if there is no control group, the periods if there is no quota."""
        counted = self._counted()
        if not counted:
            return dict.fromkeys((_TOTAL, _PERIODS), _NO_GROUP)
        return {} if counted["nr_periods"] else {_PERIODS: _NO_QUOTA}

    def close(self) -> None:
        """Does nothing."""

    def _counted(self) -> dict[str, float]:
        """Returns sums over the group and its parents, each of which may have a quota; empty if none can be read."""
        totals: dict[str, float] = {}
        for folder in cpu_groups(self._root):
            try:
                lines = (folder / "cpu.stat").read_text().splitlines()
            except OSError:
                continue
            stat = dict(line.split()[:2] for line in lines if len(line.split()) == 2)
            numbers = {key: int(stat[key]) for key in _KEYS if stat.get(key, "").isdecimal()}
            if "nr_periods" not in numbers:
                continue  # the root group of version 2 has usage only
            ns = numbers.get("throttled_usec", 0) * NS_PER_US + numbers.get("throttled_time", 0)
            for key, value in (("nr_periods", numbers["nr_periods"]), ("ns", ns)):
                totals[key] = totals.get(key, 0.0) + value
            totals["nr_throttled"] = totals.get("nr_throttled", 0.0) + numbers.get("nr_throttled", 0)
        return totals
