"""What a program loses and why, found by running it again without one kind of loss."""

import random
from collections import defaultdict
from contextlib import nullcontext
from dataclasses import dataclass

from second_simulator.kernels import DEVICES
from second_simulator.machine import Machine
from second_simulator.programs import PROGRAMS, WARMUP, Kit

DEVICE_WORK = {"compute", "memory", "underfilled"}

REGIMES: dict[str, tuple[str, ...]] = {
    "loader": ("input",), "reader": ("input", "host", "unexplained"),
    "environment": ("input", "host"), "augmentation": ("input", "host"),
    "preemption": ("unexplained", "interruption", "host", "launch"),
    "metric": ("host",), "pause": ("interruption",), "evaluation": ("interruption",), "queue": (),
}  # fmt: skip
"""The regimes by which a component may rightly be called. A component that is not listed is a regime itself.

A `reader` is a generator without a DataLoader. `environment` and `augmentation` create the next batch in the loop.
A preempted thread leaves no event. A full launch queue waits for device work, which is no loss.
"""

NEAR = 0.05
"""Two losses are equally right if their shares of the time differ by no more than that."""

SMALL = 0.15
"""With the largest loss below this share, the regime of the device's work is a right answer too."""


@dataclass(frozen=True)
class Run:
    """One simulated recording; times in microseconds."""

    kind: str
    machine: Machine
    start: float
    time: float
    steps: int
    ranks: int


@dataclass(frozen=True)
class Truth:
    """Shares of the recorded time. `idle` is the time without device work, by what the host did then."""

    recoverable: dict[str, float]
    idle: dict[str, float]
    accepted: frozenset[str]


def simulate(seed: int, removed: frozenset[str] = frozenset()) -> Run:
    """Runs the program that a seed draws. `removed` names components that cost nothing while it is recorded."""
    draw, kind = random.Random(seed), list(PROGRAMS)[seed % len(PROGRAMS)]
    m = Machine(seed, draw.choice(DEVICES), removed, stack=draw.random() < 0.6)
    program = PROGRAMS[kind](Kit(draw, m))
    for m.step in range(WARMUP):
        for part in program.parts:
            part()
    m.wait("queue", m.device_end())
    m.recording, start = True, m.now
    with m.frame("train.py(88): <module>"):
        for m.step in range(WARMUP, WARMUP + program.steps):
            with m.annotation(f"ProfilerStep#{m.step}") if program.marked else nullcontext():
                for part in program.parts:
                    part()
        m.call("cudaDeviceSynchronize", 3.0, "queue", m.device_end())
    return Run(kind, m, start, m.now - start, program.steps, program.ranks)


def idle_by_activity(run: Run) -> dict[str, float]:
    """Returns the share of the time in which the device has no work, by what the host does then."""
    idle: dict[str, float] = defaultdict(float)
    work = sorted((row.start, row.end) for row in run.machine.rows if row.category in ("kernel", "gpu_memcpy"))
    gaps, busy_until = [], run.start
    for start, end in [*work, (run.start + run.time, 0.0)]:
        if start > busy_until:
            gaps.append((busy_until, start))
        busy_until = max(busy_until, end)
    first = 0
    for start, end, component in run.machine.activity:
        while first < len(gaps) and gaps[first][1] <= start:
            first += 1
        for gap in gaps[first:]:
            if gap[0] >= end:
                break
            idle[component] += (min(end, gap[1]) - max(start, gap[0])) / run.time
    return dict(idle)


def truth(run: Run, seed: int) -> Truth:
    """Simulates the seed again, once without each group of components that go by the same regimes."""
    named = {component: REGIMES.get(component, (component,)) for component in run.machine.components}
    recoverable: dict[str, float] = defaultdict(float)
    for regimes in sorted(set(named.values())):
        removed = frozenset(component for component in named if named[component] == regimes)
        saved = 1.0 - simulate(seed, removed).time / run.time if regimes else 0.0
        recoverable |= {regime: max(saved, recoverable[regime]) for regime in regimes}
    return Truth(recoverable, idle_by_activity(run), _accepted(recoverable))


def _accepted(recoverable: dict[str, float]) -> frozenset[str]:
    work = {regime: share for regime, share in recoverable.items() if regime in DEVICE_WORK}
    losses = {regime: share for regime, share in recoverable.items() if regime not in DEVICE_WORK}
    if not work:
        return frozenset({"gpu_unused"})
    largest, most = max(losses.values()), max(work.values())
    right = {regime for regime, share in losses.items() if share >= max(NEAR, largest - NEAR)}
    if largest < SMALL or most > largest:
        right |= {regime for regime, share in work.items() if share >= most - NEAR}
    return frozenset(right)
