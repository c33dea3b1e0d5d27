"""What the monitor's telemetry beside a trace says of the run: the memory of its device, and how long the host needs
for a step when the device does not hold it back.

A host that launches work faster than the device does it waits for the device, so its steps take as long as the
device's. But steps that begin when the device has nothing to do only fill its queue: the first ones of the run, and
those after a recording, which ends with a wait for the device. On an H100, such steps of a transformer took 14 to 17
ms, as the CPU time of the thread says, and all others 38 ms.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile, zip_longest
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tb_bottleneck.sources.file_system import LOCAL
from tb_bottleneck.sources.paths import is_url
from tb_bottleneck.sources.telemetry.event_files import holds_telemetry, is_event_file

if TYPE_CHECKING:
    from tb_bottleneck.schema.telemetry_pb2 import Packet

MAX_BYTES = 4 << 20
"""Bytes at the start of the event file that are read: several thousand steps."""
FILLING = 2
"""Least number of steps that only fill the queue, which holds about 1,000 launches. A choice: of six trainings on an
H100, the third step already waited in one."""
SHORTER = 0.9
"""Steps that only fill the queue take less than this part of the usual step; otherwise the host limits the steps."""


class RunBeside(NamedTuple):
    """`host_pace` are the times (ns) of steps that began with an empty queue and were shorter than the others, shortest
    first; empty if there are less than two. `host_phases` are the median times (ns) of PHASES in them. `memory` are the
    highest values (bytes) of MEMORY."""

    host_pace: tuple[float, ...] = ()
    host_phases: Mapping[str, float] = {}
    memory: Mapping[str, float] = {}


PHASES = ("backward", "optimizer")
"""Phases of a step whose time the monitor measures in all trainings."""
MEMORY = ("memory_used", "memory_reserved")
"""Signals of the device memory: in use by all processes, and by torch in this process."""


def run_beside(trace: str) -> RunBeside:
    """Returns what the telemetry of the process says that lies in the folder of `trace`; nothing if the folder has the
    telemetry of no or of several processes. Never raises OSError."""
    steps: list[_Step] = []
    memory: dict[str, float] = {}
    try:
        for packet in _packets(trace):
            steps += _single_steps(packet)
            series = [(each.name, each.values) for each in packet.series]
            for name, values in series + [(each.name, each.values) for each in packet.steps.columns]:
                if name in MEMORY:
                    memory[name] = max(memory.get(name, 0.0), *(value for value in values if isfinite(value)), 0.0)
    except OSError:
        return RunBeside()
    filling = sorted(_filling(steps))
    phases = {
        name: float(np.median([step.phases[at] for step in filling])) for at, name in enumerate(PHASES) if filling
    }
    return RunBeside(tuple(step.wall for step in filling), phases, memory)


class _Step(NamedTuple):
    """The wall time of a step, whether a profiler recorded it, and the times of its PHASES (0 if unknown), in ns."""

    wall: float
    profiled: bool
    phases: tuple[float, ...]


def _filling(steps: Sequence[_Step]) -> Sequence[_Step]:
    """Returns the steps that only filled the queue of launches; none if there are less than two."""
    usual = [step.wall for step in steps if not step.profiled]
    if len(usual) <= 4 * FILLING:
        return ()
    typical = float(np.median(usual))
    # The first step of a run also starts the device, so it counts as one that the profiler recorded.
    begins = [at for at in range(1, len(steps)) if not steps[at].profiled and (at == 1 or steps[at - 1].profiled)]
    shorter: list[_Step] = []
    for begin in begins:
        after = list(takewhile(lambda step: not step.profiled, steps[begin:]))
        group = list(takewhile(lambda step: step.wall < SHORTER * typical, after))
        # In the last step of a long group, the queue became full.
        shorter += group[:-1] if len(group) > FILLING else [s for s in after[:FILLING] if s.wall < SHORTER * typical]
    return shorter if len(shorter) >= FILLING else ()


def _packets(trace: str) -> "Iterator[Packet]":
    """Yields the packets at the start of the telemetry beside `trace`."""
    if is_url(trace):
        return
    files = LOCAL.files_in(os.path.dirname(os.path.abspath(trace)), is_event_file)
    ours = [path for path in files if holds_telemetry(path, LOCAL.status(path).size)]
    if len(ours) != 1:
        return
    from tb_bottleneck.schema.telemetry_pb2 import Packet  # here, because only few traces have telemetry beside them
    from tb_bottleneck.sources.telemetry.telemetry_file import SeriesFile

    for message in SeriesFile(ours[0], follow_links=False).read(MAX_BYTES).messages:
        if isinstance(message, Packet):
            yield message


def _single_steps(packet: "Packet") -> Iterator[_Step]:
    """Yields the steps of `packet`; nothing if a row is several steps."""
    rows = packet.steps
    columns = {column.name: column.values for column in rows.columns}
    profiled, *phases = (columns.get(name, ()) for name in ("profiled", *PHASES))
    if not rows.steps:
        for wall, mark, *times in zip_longest(rows.wall_ns, profiled, *phases, fillvalue=0.0):
            yield _Step(wall, mark > 0, tuple(times))
