"""Measures of the waits that cost something: how many, for what, and where in the program they stand."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.measure import Measure, Missing, text_measure
from tb_bottleneck.measures.trace.costly_syncs import EXPLICIT, READ, SHAPE, UPLOAD, CostlyWait, costly_waits_of
from tb_bottleneck.measures.trace.python_frames import blocks_at, frames_of
from tb_bottleneck.trace.kernel_names import cut
from tb_bottleneck.units import share_text

_CPU_RUN = Missing("the work ran on the CPU: there are no runtime calls")
_NO_WAIT = Missing("no wait cost anything")
_NO_STACKS = Missing("Python frames were not recorded; with_stack=True names the lines")
MAX_OPERATORS_LISTED = 3


def costly_waits(recording: Recording) -> Measure | Missing:
    """Waits per step behind which the device idled."""
    return _count(recording, None)


def costly_reads(recording: Recording) -> Measure | Missing:
    """Reads of the device's values per step behind which the device idled."""
    return _count(recording, READ)


def read_waits(recording: Recording) -> Measure | Missing:
    """Share of what waits cost that reads of the device's values do."""
    return _share(recording, READ)


def upload_waits(recording: Recording) -> Measure | Missing:
    """Share of what waits cost that copies to the device do, because the host waits for them."""
    return _share(recording, UPLOAD)


def shape_waits(recording: Recording) -> Measure | Missing:
    """Share of what waits cost that operators do whose results' sizes only the device knows."""
    return _share(recording, SHAPE)


def explicit_waits(recording: Recording) -> Measure | Missing:
    """Share of what waits cost that the program asks for outside of any operator."""
    return _share(recording, EXPLICIT)


def idle_in_waits(recording: Recording) -> Measure | Missing:
    """Time per step that the device is idle inside a wait, before the host goes on."""
    if not recording.on_device:
        return _CPU_RUN
    return Measure(
        float(recording.gaps.by_activity[:, Activity.SYNCHRONIZE].sum()) / len(recording.steps), "ns", "step"
    )


def waiting_operators(recording: Recording) -> Measure | Missing:
    """The operators inside which the costly waits happen, the dearest first, with their share of what waits cost."""
    if not recording.on_device:
        return _CPU_RUN
    waits = costly_waits_of(recording)
    if not waits:
        return _NO_WAIT
    dearest = max(waits, key=lambda wait: wait.cost)
    return replace(_dearest((wait.operator, wait.cost) for wait in waits), begin=dearest.begin, end=dearest.end)


def waiting_lines(recording: Recording) -> Measure | Missing:
    """The user's lines that wait, as `file.py(line): function`, the dearest first. Lines inside torch are no use.

    Where no frames were recorded, the record_function blocks that wait.
    """
    if not recording.on_device:
        return _CPU_RUN
    told = list(_lines(recording))
    if not told and not recording.trace.header.stacks_recorded:
        return _NO_STACKS
    return _dearest(told) if told else Missing("no line of the program's own was recorded around these waits")


def _count(recording: Recording, kind: str | None) -> Measure | Missing:
    if not recording.on_device:
        return _CPU_RUN
    waits = [wait for wait in costly_waits_of(recording) if kind in (None, wait.kind)]
    if not waits:
        return Measure(0.0, "count", "step", 0)
    dearest = max(waits, key=lambda wait: wait.cost)
    rate = len(waits) / len(recording.steps)
    return Measure(rate, "count", "step", len(waits), begin=dearest.begin, end=dearest.end)


def _share(recording: Recording, kind: str) -> Measure | Missing:
    if not recording.on_device:
        return _CPU_RUN
    waits = costly_waits_of(recording)
    if not waits:
        return _NO_WAIT
    mine: list[CostlyWait] = [wait for wait in waits if wait.kind == kind]
    part = sum(wait.cost for wait in mine) / sum(wait.cost for wait in waits)
    if not mine:
        return Measure(part, "share", "waits", 0)
    dearest = max(mine, key=lambda wait: wait.cost)
    return Measure(part, "share", "waits", len(mine), begin=dearest.begin, end=dearest.end)


def _lines(recording: Recording) -> Iterator[tuple[str, int]]:
    """The user's innermost line, or block, around each wait that has one, and what the wait cost."""
    trace, waits = recording.trace, costly_waits_of(recording)
    for thread in sorted({wait.thread for wait in waits}):
        mine = [wait for wait in waits if wait.thread == thread]
        times = np.array([wait.begin for wait in mine], np.int64)
        rows = frames_of(recording, thread).at(times)
        rows = rows if (rows >= 0).any() else blocks_at(recording, thread, times)
        for wait, row in zip(mine, rows.tolist(), strict=True):
            if row >= 0:
                yield trace.names[trace.events.name[row]], wait.cost


def _dearest(costs: Iterable[tuple[str, int]]) -> Measure:
    total: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for name, cost in costs:
        total[name] += cost
        times[name] += 1
    whole = sum(total.values())
    most = [
        f"{cut(name)} ({times[name]}x, {share_text(cost / whole)})"
        for name, cost in total.most_common(MAX_OPERATORS_LISTED)
    ]
    return text_measure(", ".join(most), sum(times.values()))
