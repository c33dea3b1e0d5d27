"""The heartbeat of a monitored process: a small file in its run directory that says where the training is.

Readers join the heartbeats of all ranks of a job (jobs/live). The file `heartbeat.json` is replaced at most every
EVERY_S seconds, and is shortened to MAX_BYTES by leaving out stacks. It contains:

    {"schema": 1, "unix_ns": time of writing, "began_unix_ns": of the monitor, "state": "running" | "ended" | "failed",
     "error": name of the exception, "pid": N, "host": digest of the machine, "rank": N, "world_size": N,
     "job": id that the ranks of a job share, over restarts, "restart": N,
     "step": last finished step or -1, "step_unix_ns": end of this step, or null,
     "usual_step_ns": median of the last USUAL_STEPS steps, without the time of evaluation, or null,
     "longest_pause_ns": longest step so far,
     "phase": what the training thread does, such as "data" (stall_stacks.py),
     "where": [file, line, function] that the training thread runs, or null,
     "still_s": for how long the training thread has been at the same lines, while no step ended,
     "stacks": [{"thread": name, "training": bool, "frames": [[file, line, function]]}], if still_s is at least STILL_S,
     "recent": {step column: median over the steps of the last minute; "wall" and "own": medians of the step's time and
                of own time in ns, "own_mean": mean of own time in ns, "steps": number of steps},
     "device": {series: mean over the last minute},
     "lines": [[file, line, function, phase, samples]] of the training thread over the last minute, most frequent first,
     "history": [[start (s since 1970), number of steps, then means: step (ns), loader wait (ns), own host time (ns),
                  device clock (Hz)]]}

Own time is the time of a step without the backward pass, in which ranks exchange gradients and wait for each other. Own
host time is own time without the wait for the loader.
"""

import contextlib
import json
import math
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

from tb_bottleneck.base.machine import machine_digest
from tb_bottleneck.base.persistence import atomic_file
from tb_bottleneck.monitor.samplers.sampler import Reading
from tb_bottleneck.monitor.steps.row_queue import StepRow
from tb_bottleneck.monitor.steps.step_clock import StepClock
from tb_bottleneck.monitor.writer.run_directory import ProcessRank
from tb_bottleneck.monitor.writer.stall_stacks import StallStacks
from tb_bottleneck.schema.signals import HEARTBEAT_FILE, HEARTBEAT_SCHEMA

EVERY_S, LOOK_S = 5.0, 1.0
STILL_S = 5.0
"""If the training thread is at the same lines for this time in s, the stacks of all threads are written."""
STRETCH_S = 60.0
USUAL_STEPS = 101
MAX_LINES = 8
SETTLED_STEP = 3
"""First step whose duration counts for `longest_pause_ns`. Earlier steps include the start-up."""
MAX_BUCKETS, FIRST_BUCKET_S = 90, 5.0
"""Maximum number of time intervals (buckets) of the history, and their length at the start. When the history is full,
pairs of buckets are joined, so that the history always covers the whole run."""
MAX_BYTES = 32_000
DEVICE_SERIES = (
    "sm_clock", "sm_clock_max", "power", "power_limit", "temperature", "gpu_utilisation", "clock_event_reasons",
    "memory_used", "memory_total", "pcie_generation", "pcie_generation_max", "pcie_width", "pcie_width_max",
    "process_cores", "cpu_usable_cores", "other_processes",
)  # fmt: skip
"""Series of which the mean over the last minute is written."""


@dataclass(slots=True)
class _Bucket:
    """Sums over the steps that ended in one time interval of the run, in ns: `wall` is the time of the steps, `wait`
    the wait for the loader, and `host` the rest of `wall` without the backward pass. `clocks` has the sum of the
    device's clock rates in Hz and the number of readings."""

    begin_s: float
    steps: int = 0
    wall: float = 0.0
    wait: float = 0.0
    host: float = 0.0
    clocks: list[float] = field(default_factory=list)  # [sum in Hz, number]

    def add(self, other: "_Bucket") -> None:
        self.steps += other.steps
        self.wall += other.wall
        self.wait += other.wait
        self.host += other.host
        self.clocks = [a + b for a, b in zip(self.clocks or (0.0, 0.0), other.clocks or (0.0, 0.0), strict=True)]

    def row(self) -> list[float | None]:
        means = [round(total / self.steps) if self.steps else None for total in (self.wall, self.wait, self.host)]
        clock = round(self.clocks[0] / self.clocks[1]) if self.clocks and self.clocks[1] else None
        return [round(self.begin_s, 1), self.steps, *means, clock]


class History:
    """The history of the whole run, in at most MAX_BUCKETS time intervals of equal length."""

    def __init__(self) -> None:
        self._length_s = FIRST_BUCKET_S
        self._buckets: list[_Bucket] = []

    def add(self, unix_s: float, rows: Sequence[StepRow], clocks: Sequence[float]) -> None:
        """Adds the steps `rows`, which ended before `unix_s` (s since 1970). `clocks` has the device clocks in Hz that
        were read during these steps."""
        part = _Bucket(unix_s, clocks=[sum(clocks), float(len(clocks))] if clocks else [])
        for row in rows:
            wait, backward = row.figures.get("loader_wait", 0.0), row.figures.get("backward", 0.0)
            part.steps += row.steps
            part.wall += row.wall_ns * row.steps
            part.wait += wait * row.steps
            part.host += max(row.wall_ns - wait - backward, 0.0) * row.steps
        if not self._buckets or unix_s >= self._buckets[-1].begin_s + self._length_s:
            self._buckets.append(_Bucket(unix_s))
        self._buckets[-1].add(part)
        if len(self._buckets) > MAX_BUCKETS:
            self._length_s *= 2
            pairs = [self._buckets[number : number + 2] for number in range(0, len(self._buckets), 2)]
            for first, *second in pairs:
                for other in second:
                    first.add(other)
            self._buckets = [pair[0] for pair in pairs]

    def rows(self) -> list[list[float | None]]:
        """Returns the rows of `history` in heartbeat.json, the oldest first."""
        return [bucket.row() for bucket in self._buckets]


class Heartbeat:
    """Writes the file heartbeat.json. All methods are for the monitor's thread; `error` may be set by the training
    thread."""

    def __init__(
        self,
        directory: Path,
        rank: ProcessRank,
        clock: StepClock,
        stacks: StallStacks | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = directory / HEARTBEAT_FILE
        self._rank, self._clock, self._now = rank, clock, now
        self._stacks = stacks or StallStacks()
        self._began = time.time_ns()
        self._host = machine_digest()
        self._steps = -1
        self._written = -math.inf
        self._longest_ns = 0.0
        self._usual: deque[float] = deque(maxlen=USUAL_STEPS)
        self._recent: deque[tuple[float, StepRow]] = deque(maxlen=5_000)
        self._device: deque[tuple[float, str, float]] = deque(maxlen=5_000)
        self._lines: deque[tuple[float, tuple[str, int, str, str]]] = deque(maxlen=round(STRETCH_S / LOOK_S))
        self._history = History()
        self.error = ""
        """The name of the exception that ended the training."""

    def add(self, rows: Sequence[StepRow], readings: Sequence[Reading]) -> None:
        """Adds finished steps and new readings to the next heartbeat."""
        now = self._now()
        plain = [row for row in rows if not row.is_profiled]
        self._usual.extend(row.working_ns for row in plain)
        self._longest_ns = max([self._longest_ns, *(row.wall_ns for row in rows if row.number >= SETTLED_STEP)])
        self._recent.extend((now, row) for row in plain)
        self._device.extend((now, each.name, each.value) for each in readings if each.name in DEVICE_SERIES)
        self._history.add(time.time(), plain, [each.value for each in readings if each.name == "sm_clock"])
        for kept in (self._recent, self._device):
            while kept and now - kept[0][0] > STRETCH_S:
                kept.popleft()

    def beat(self) -> None:
        """Samples the stack of the training thread, and writes the file if EVERY_S seconds have passed since the last
        write."""
        now = self._now()
        if self._clock.steps != self._steps:
            self._steps = self._clock.steps
            self._stacks.reset()
        self._stacks.look(self._clock.thread)
        if self._stacks.where is not None:
            self._lines.append((now, (*self._stacks.where, self._stacks.phase)))
        if now - self._written >= EVERY_S:
            with contextlib.suppress(OSError):  # a full disk or a lost share: the next write may succeed
                self.write("running")

    def write(self, state: str) -> None:
        """Writes the file with `state`, "running" or "ended". If the training ended with an error, the state is
        "failed". Raises OSError."""
        self._written = self._now()
        content = self._content("failed" if state == "ended" and self.error else state)
        text = json.dumps(content, separators=(",", ":"))
        while len(text) > MAX_BYTES and content["stacks"]:
            content["stacks"].pop()
            text = json.dumps(content, separators=(",", ":"))
        with atomic_file(self._path, mode=0o666) as file:
            file.write(text.encode())

    def _content(self, state: str) -> dict[str, Any]:
        clock, stacks = self._clock, self._stacks
        since = clock.began
        still = stacks.still_s
        return {
            "schema": HEARTBEAT_SCHEMA,
            "unix_ns": time.time_ns(),
            "began_unix_ns": self._began,
            "state": state,
            "error": self.error,
            "pid": os.getpid(),
            "host": self._host,
            "rank": self._rank.rank,
            "world_size": self._rank.world_size,
            "job": self._rank.run,
            "restart": self._rank.restart,
            "step": clock.steps - 1,
            "step_unix_ns": None if since is None else time.time_ns() - time.perf_counter_ns() + since,
            "usual_step_ns": median(self._usual) if self._usual else None,
            "longest_pause_ns": self._longest_ns,
            "phase": stacks.phase,
            "where": stacks.where,
            "still_s": round(still, 1),
            "stacks": stacks.all_threads(clock.thread) if still >= STILL_S else [],
            "recent": self._recent_steps(),
            "lines": [
                [*line, looks] for line, looks in Counter(line for _, line in self._lines).most_common(MAX_LINES)
            ],
            "device": _means_by_name((name, value) for _, name, value in self._device),
            "history": self._history.rows(),
        }

    def _recent_steps(self) -> dict[str, float]:
        """Returns `recent` of heartbeat.json; empty without steps. A figure that a step does not have counts as
        zero."""
        rows = [row for _, row in self._recent]
        if not rows:
            return {}
        names = {name for row in rows for name in row.figures} - {"profiled"}
        typical = {name: median(row.figures.get(name, 0.0) for row in rows) for name in sorted(names)}
        own = [row.wall_ns - row.figures.get("backward", 0.0) for row in rows]
        typical |= {"wall": median(row.wall_ns for row in rows), "own": median(own), "own_mean": fmean(own)}
        return {name: value for name, value in typical.items() if math.isfinite(value)} | {"steps": len(rows)}


def _means_by_name(values: Any) -> Mapping[str, float]:
    by_name: dict[str, list[float]] = {}
    for name, value in values:
        by_name.setdefault(name, []).append(value)
    return {name: fmean(each) for name, each in sorted(by_name.items())}
