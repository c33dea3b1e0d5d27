"""Measures of the synchronisations that cost time: their number, their kinds, and their places in the program."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.measure import Measure, Missing, text_measure
from tb_bottleneck.measures.trace.costly_syncs import EXPLICIT, READ, SHAPE, UPLOAD, CostlyWait, costly_waits_of
from tb_bottleneck.trace.kernel_names import cut
from tb_bottleneck.units import share_text

_CPU_RUN = Missing("the work ran on the CPU: there are no runtime calls")
_NO_WAIT = Missing("no wait left the device idle")
MAX_NAMES_LISTED = 3
# A kind of wait is worth its own finding from a quarter of the cost on.
MIN_WAIT_KIND_SHARE = 0.25


def costly_waits(recording: Recording) -> Measure | Missing:
    """Waits per step that left the device idle."""
    return _count(recording, None)


def costly_reads(recording: Recording) -> Measure | Missing:
    """Reads of device values per step that left the device idle."""
    return _count(recording, READ)


def read_waits(recording: Recording) -> Measure | Missing:
    """Share of the waits' cost that is due to reads of device values."""
    return _share(recording, READ)


def upload_waits(recording: Recording) -> Measure | Missing:
    """Share of the waits' cost that is due to copies to the device that the host waits for."""
    return _share(recording, UPLOAD)


def shape_waits(recording: Recording) -> Measure | Missing:
    """Share of the waits' cost that is due to operators with results of a size that only the device knows."""
    return _share(recording, SHAPE)


def explicit_waits(recording: Recording) -> Measure | Missing:
    """Share of the waits' cost that is due to synchronisations outside any operator."""
    return _share(recording, EXPLICIT)


def minor_kind_waits(recording: Recording) -> Measure | Missing:
    """Share of the waits, by number, that are of kinds with less than MIN_WAIT_KIND_SHARE of the cost each."""
    if not recording.on_device:
        return _CPU_RUN
    waits = costly_waits_of(recording)
    if not waits:
        return _NO_WAIT
    costs: Counter[str] = Counter()
    for wait in waits:
        costs[wait.kind] += wait.cost
    minor = sum(costs[wait.kind] < MIN_WAIT_KIND_SHARE * costs.total() for wait in waits)
    return Measure(minor / len(waits), "share", "waits", minor)


def kinds_of_waits(recording: Recording) -> Measure | Missing:
    """The kinds of the costly waits, costliest first, with their number and their share of the waits' cost."""
    if not recording.on_device:
        return _CPU_RUN
    waits = costly_waits_of(recording)
    return _costliest_names((wait.kind, wait.cost) for wait in waits) if waits else _NO_WAIT


def idle_in_waits(recording: Recording) -> Measure | Missing:
    """Time per step that the device is idle inside a wait, before the host continues."""
    if not recording.on_device:
        return _CPU_RUN
    return Measure(
        float(recording.gaps.by_activity.of(Activity.SYNCHRONIZE).sum()) / len(recording.steps), "ns", "step"
    )


def waiting_operators(recording: Recording) -> Measure | Missing:
    """The operators that contain the costly waits, costliest first, with their share of the waits' cost."""
    if not recording.on_device:
        return _CPU_RUN
    waits = costly_waits_of(recording)
    if not waits:
        return _NO_WAIT
    costliest = max(waits, key=lambda wait: wait.cost)
    listed = _costliest_names((wait.operator, wait.cost) for wait in waits)
    return replace(listed, begin=costliest.begin, end=costliest.end)


def _count(recording: Recording, kind: str | None) -> Measure | Missing:
    if not recording.on_device:
        return _CPU_RUN
    waits = [wait for wait in costly_waits_of(recording) if kind in (None, wait.kind)]
    if not waits:
        return Measure(0.0, "count", "step", 0)
    costliest = max(waits, key=lambda wait: wait.cost)
    rate = len(waits) / len(recording.steps)
    return Measure(rate, "count", "step", len(waits), begin=costliest.begin, end=costliest.end)


def _share(recording: Recording, kind: str) -> Measure | Missing:
    if not recording.on_device:
        return _CPU_RUN
    waits = costly_waits_of(recording)
    if not waits:
        return _NO_WAIT
    of_kind: list[CostlyWait] = [wait for wait in waits if wait.kind == kind]
    part = sum(wait.cost for wait in of_kind) / sum(wait.cost for wait in waits)
    if not of_kind:
        return Measure(part, "share", "waits", 0)
    costliest = max(of_kind, key=lambda wait: wait.cost)
    return Measure(part, "share", "waits", len(of_kind), begin=costliest.begin, end=costliest.end)


def _costliest_names(costs: Iterable[tuple[str, int]]) -> Measure:
    """Returns the names with the highest total cost, each with its count and its share of all costs."""
    total: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for name, cost in costs:
        total[name] += cost
        times[name] += 1
    whole = sum(total.values())
    costliest = total.most_common(MAX_NAMES_LISTED)
    listed = [f"{cut(name)} ({times[name]}x, {share_text(cost / whole)})" for name, cost in costliest]
    return text_measure(", ".join(listed), sum(times.values()))
