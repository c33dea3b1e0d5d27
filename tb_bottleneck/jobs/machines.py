"""Code or machine? The figures that the monitor or `doctor --job` measures in each rank of a job are compared
(monitor/machine_check.py): a rank that is slower at the same work has a slower machine."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tb_bottleneck.base.units import ranks_text, share_text

NAMES = {
    "product": "its device multiplies matrices",
    "device_copy": "the memory of its device copies",
    "to_device": "copies to its device are",
    "host_memory": "the memory of its host copies",
    "core": "its process runs",
    "link": "messages from the rank before it are",
}
SLOWER = {"product": 0.08, "device_copy": 0.08, "to_device": 0.25, "host_memory": 0.25, "core": 0.2, "link": 0.4}
"""A figure is slow if it is lower than that of most ranks by this share. Equal GPUs differ by about 2 % at the same
work; cores, memory and links of one host, which ranks share, by more. Choices."""
SLOWER_ON_CPU = {**SLOWER, "product": 0.25, "core": 0.25, "link": 0.6}
"""The same if the devices are cores: products differ as cores do, and messages between two ranks of one virtual machine
took up to 2.2 times as long in one direction as in the other. Choices."""
MOST, FARTHER, OF_NEXT = 0.7, 2.5, 0.5
"""A slow figure also differs from the usual one by FARTHER times as much as those of the part MOST of the ranks do, or
it is at most OF_NEXT of that of the second slowest rank. Choices."""


@dataclass(frozen=True)
class SlowMachine:
    """A figure of a rank that is slower than on the others by the share `slower`."""

    rank: int
    figure: str
    slower: float
    waits: bool

    @property
    def sentence(self) -> str:
        """A sentence that names the rank, the figure and the difference."""
        why = ""
        if self.figure == "core":
            why = (
                ": other programs use its cores, or a quota holds it back"
                if self.waits
                else ": the clock of its core is lower"
            )
        return f"Rank {self.rank}: {NAMES[self.figure]} {share_text(self.slower)} slower than on the other ranks{why}."


def slow_machines(figures: Sequence[Mapping[str, float]], on_cpu: bool) -> list[SlowMachine]:
    """Returns what is slower on single ranks, the largest difference first. `figures` has the figures of each rank."""
    found = []
    for name, limit in (SLOWER_ON_CPU if on_cpu else SLOWER).items():
        values = [each[name] for each in figures if each.get(name, 0.0) > 0]
        if len(values) < 2:
            continue
        usual = statistics.median_high(values)
        spread = sorted(abs(value / usual - 1) for value in values)[int(MOST * (len(values) - 1))]
        far_below = OF_NEXT * sorted(values)[1]
        for rank, each in enumerate(figures):
            slower = 1 - each.get(name, usual) / usual
            if slower >= limit and (slower >= FARTHER * spread or each[name] <= far_below):
                found.append(SlowMachine(rank, name, slower, _waits(name, rank, figures)))
    if on_cpu:  # a core that is busy or slow makes all other figures of its rank slower, too
        found = [each for each in found if each.figure != "core" or _others_are_slow(each, figures)]
        cores = {each.rank for each in found if each.figure == "core"}
        found = [each for each in found if each.rank not in cores or each.figure == "core"]
    return sorted(found, key=lambda each: -each.slower)


def _others_are_slow(found: SlowMachine, figures: Sequence[Mapping[str, float]]) -> bool:
    """Returns True if the products or the memory of a rank with a slow core are slower, too, by at least half as much,
    or if neither is known. In a virtual machine, the core alone differed by up to 37 % for a short time."""
    known = [name for name in ("product", "host_memory") if all(each.get(name, 0.0) > 0 for each in figures)]
    usual = {name: statistics.median_high(each[name] for each in figures) for name in known}
    slower = [1 - figures[found.rank][name] / usual[name] for name in known]
    return not slower or max(slower) >= found.slower / 2


def _waits(name: str, rank: int, figures: Sequence[Mapping[str, float]]) -> bool:
    """Returns True if `rank` is slow although its core is not: its process does not run all the time."""
    speeds = [each["core_cpu"] for each in figures if "core_cpu" in each]
    if name != "core" or not speeds:
        return False
    return figures[rank].get("core_cpu", 0.0) > (1 - SLOWER_ON_CPU["core"]) * statistics.median_high(speeds)


def verdict_text(found: Sequence[SlowMachine], ranks: int) -> str:
    """Returns the verdict about a job of `ranks` ranks."""
    if not found:
        return f"The machines of all {ranks} ranks are equally fast: if a rank is slow in the job, look at the code."
    slow = ranks_text(sorted({each.rank for each in found}))
    return f"The machine of {slow} is slower at the same work: look at the machine, not at the code."


FIGURES = {
    "product": (1e12, "TFLOP/s"),
    "device_copy": (1e9, "GB/s"),
    "to_device": (1e9, "GB/s"),
    "host_memory": (1e9, "GB/s"),
    "core": (1e6, "M/s"),
    "core_cpu": (1e6, "M/s"),
    "all_reduce": (1e9, "GB/s"),
    "link": (1e9, "GB/s"),
}


def figure_table(figures: Sequence[Mapping[str, float]]) -> Iterator[str]:
    """Yields a header, the units, and one line per rank with its figures."""
    width = {name: max(len(name), 7) for name in FIGURES if any(name in each for each in figures)}
    yield "rank  " + "  ".join(f"{name:>{room}}" for name, room in width.items())
    yield "      " + "  ".join(f"{FIGURES[name][1]:>{room}}" for name, room in width.items())
    for rank, each in enumerate(figures):
        values = {name: f"{each[name] / FIGURES[name][0]:.3g}" for name in width if name in each}
        yield f"{rank:>4}  " + "  ".join(f"{values.get(name, '-'):>{room}}" for name, room in width.items())
