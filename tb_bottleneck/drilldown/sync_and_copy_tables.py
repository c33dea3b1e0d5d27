"""Tables of waits, by the place in the program, and of copies, by their kind."""

from collections import defaultdict

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.drilldown.group_by_name import groups_of
from tb_bottleneck.measures.trace.costly_syncs import CostlyWait, costly_waits_of
from tb_bottleneck.measures.trace.python_frames import frames_of
from tb_bottleneck.schema import evidence_pb2 as pb
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.units import NS_PER_S

MOST_ROWS = 100
LONGEST_NAME = 300
MOST_THREADS = 16  # whose lines are looked up, those with most waits
_COPIES = (Work.UPLOAD, Work.DOWNLOAD, Work.DEVICE_COPY, Work.PEER_COPY)

Place = tuple[str, str, str]  # kind, operator, line


def add_waits(recording: Recording, answer: pb.Tables) -> None:
    """The waits behind which the device idled, those of one place together, the dearest first."""
    if not recording.on_device:
        return
    at: defaultdict[Place, list[CostlyWait]] = defaultdict(list)
    waits = costly_waits_of(recording)
    for wait, line in zip(waits, _lines(recording, waits), strict=True):
        at[wait.kind, wait.operator, line].append(wait)
    dearest = sorted(at.items(), key=lambda item: -sum(wait.cost for wait in item[1]))
    for (kind, operator, line), those in dearest[:MOST_ROWS]:
        cost, worst = sum(wait.cost for wait in those), max(those, key=lambda wait: wait.cost)
        answer.syncs.add(
            kind=kind,
            operator=operator[:LONGEST_NAME],
            line=line[:LONGEST_NAME],
            calls=len(those),
            waited_ns=float(sum(wait.end - wait.begin for wait in those)),
            cost_ns=float(cost),
            share=cost / answer.window_ns,
            begin_ns=float(worst.begin),
            end_ns=float(worst.end),
        )


def _lines(recording: Recording, waits: tuple[CostlyWait, ...]) -> list[str]:
    """For each wait the user's line that it stands on; empty where no frames were recorded."""
    trace, lines = recording.trace, [""] * len(waits)
    places: defaultdict[int, list[int]] = defaultdict(list)
    for place, wait in enumerate(waits):
        places[wait.thread].append(place)
    for thread in sorted(places, key=lambda one: -len(places[one]))[:MOST_THREADS]:
        mine = places[thread]
        rows = frames_of(recording, thread).at(np.array([waits[place].begin for place in mine], np.int64))
        for place, row in zip(mine, rows.tolist(), strict=True):
            lines[place] = trace.names[trace.events.name[row]] if row >= 0 else ""
    return lines


def add_copies(recording: Recording, answer: pb.Tables) -> None:
    """Copies and fills in the window, by the profiler's own words for them, the longest first."""
    ops, steps = recording.trace.device_ops, recording.steps
    ops = ops.take(np.isin(ops.work, _COPIES) & (ops.end > steps.begin) & (ops.start < steps.end))
    copied = np.array([name.lower().startswith("mem") for name in recording.trace.names], np.bool_)
    ops = ops.take(copied[ops.name])
    groups = groups_of(ops.name, ops.start, ops.end)
    size = groups.summed(ops.bytes)
    for place in groups.order[:MOST_ROWS].tolist():
        longest = groups.longest[place]
        row = answer.copies.add(
            name=recording.trace.names[int(groups.value[place])][:LONGEST_NAME],
            calls=int(groups.count[place]),
            bytes=float(size[place]),
            total_ns=float(groups.total[place]),
            share=float(groups.total[place]) / answer.window_ns,
            begin_ns=float(ops.start[longest]),
            end_ns=float(ops.end[longest]),
        )
        if size[place] > 0 and groups.total[place] > 0:
            row.bytes_per_s = float(size[place]) / float(groups.total[place]) * NS_PER_S
