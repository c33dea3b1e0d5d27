"""The true account of a simulated run, from the simulator's knowledge and without any code of the analyser.

**Busy.** While a device operation runs, its known kind owns the time: a collective, a copy, or a kernel that was made
to be bound by arithmetic (compute), by bandwidth (memory), or too small (underfilled: shorter than 5 us, or with fewer
blocks than half of the multiprocessors). If several run at once, the first in this order owns the time: compute,
memory, underfilled, unknown, communication, transfer. This is the contract's rule: only exposed collectives and copies
count.

**Idle.** Each pause ends with an operation, and the simulator knows why it did not begin earlier:
- it was not launched yet (`late`): until its launch, the pause belongs to the host's activity; the launch latency after
  it is `launch`, or belongs to the phase (interruption, loader, a copy's staging) that contains the launch;
- the device needed a pause between two queued operations: underfilled, as the contract defines;
- the device ran another process (`stall`): that part is unexplained.
REGIME_OF maps the host's activities to regimes. A phase (loader, interruption) covers everything inside it. A pause at
the end of the window belongs to the host's activity.

**Sync.** The program is run again with no call waiting for the device or for a copy. Idle dispatch time that disappears
was caused by waiting: it is `sync`, like the idle time inside the waits themselves. Other idle time (a loader that
would then have been hidden) stays with the host's activity: the account names the direct cause.

**As recorded.** Phases that leave no row cannot be distinguished from Python code between two operators. Workloads give
them the activity `python` from the start, so their truth is `host`. If a recording does not contain the number of
multiprocessors, a kernel's blocks are meaningless, and only a short duration makes it underfilled.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from simulate.machine import Machine
from simulate.program import ALLOCATE, COPY, DISPATCH, INTERRUPT, LOAD, PYTHON, WAIT, Program
from simulate.run import Op, Run

REGIME_OF = {
    LOAD: "input",
    INTERRUPT: "interruption",
    ALLOCATE: "allocator",
    WAIT: "sync",
    COPY: "transfer",
    DISPATCH: "launch",
    PYTHON: "host",
}
BUSY_ORDER = ("compute", "memory", "underfilled", "unknown", "communication", "transfer")
STEPS_TO_LOSE_ONE = 3
_OWNER = {
    "contraction": "compute",
    "streaming": "memory",
    "unknown": "unknown",
    "collective": "communication",
    "host_copy": "transfer",
}


@dataclass(frozen=True)
class Truth:
    """Nanoseconds of a window by regime."""

    ns: dict[str, int]
    begin: int
    end: int

    def share(self, regime: str) -> float:
        """Share of the window."""
        return self.ns.get(regime, 0) / (self.end - self.begin)


def truth_of(program: Program, run: Run, multiprocessors: int | None, basis: str) -> Truth:
    """Returns the true account of a run, in the window that the contract defines for this basis of steps."""
    begin, end = window_of(run, basis)
    ns = account_of(run, multiprocessors, begin, end)
    unhindered = Machine(program, waits=False).run()
    without = account_of(unhindered, multiprocessors, *window_of(unhindered, basis))
    caused = max(ns.get("launch", 0) - without.get("launch", 0), 0)
    ns["launch"] = ns.get("launch", 0) - caused
    ns["sync"] = ns.get("sync", 0) + caused
    return Truth(ns, begin, end)


def window_of(run: Run, basis: str) -> tuple[int, int]:
    """Returns (begin, end) of the analysed window. A step ends when the host and the device have finished its work.

    `profiler_step`: steps are the profiler's marks. `inferred`: steps are between the ends of the optimizer's rows. The
    first of three or more steps is excluded, because the profiler's start emptied the launch queue before it. `whole`:
    from the first to the last device operation, and the fetch of a batch before that.
    """
    ops = device_ops(run)
    if basis == "whole":
        first = min(op.begin for op in ops)
        fetches = [row.begin for row in run.rows if row.name.startswith("enumerate(Data") and row.begin < first]
        return max(fetches, default=first), max(op.end for op in ops)
    if basis == "profiler_step":
        marks = sorted((row.begin, row.end) for row in run.rows if row.name.startswith("ProfilerStep"))
        edges = [begin for begin, _ in marks] + [marks[-1][1]]
    else:
        edges = sorted(row.end for row in run.rows if row.name.startswith("Optimizer.step"))
    lost = 1 if len(edges) - 1 >= STEPS_TO_LOSE_ONE else 0
    ends = [max([edges[i], *(op.end for op in ops if edges[0] <= op.issued < edges[i])]) for i in (lost, -1)]
    return ends[0], ends[1]


def device_ops(run: Run) -> list[Op]:
    """Returns the operations of the device that the report describes: the one with most operations."""
    devices = [op.device for op in run.ops]
    busiest = max(sorted(set(devices)), key=devices.count)
    return [op for op in run.ops if op.device == busiest]


def account_of(run: Run, multiprocessors: int | None, begin: int, end: int) -> dict[str, int]:
    """Returns nanoseconds of [begin, end) by regime, before idle time that waits caused is moved to sync."""
    ns: dict[str, int] = {}
    ops = sorted(device_ops(run), key=lambda op: op.begin)
    beginning = {op.begin: op for op in ops}
    for owner, a, b in _painted(ops, multiprocessors, begin, end):
        if owner:
            ns[owner] = ns.get(owner, 0) + b - a
        else:
            for regime, part in _idle(beginning.get(b), run, a, b):
                ns[regime] = ns.get(regime, 0) + part
    ns["unexplained"] = ns.get("unexplained", 0) + ns.pop("unknown", 0)
    return ns


def owner_of(op: Op, multiprocessors: int | None) -> str:
    """Returns the regime of an operation that runs alone."""
    kernel = op.work in ("contraction", "streaming", "unknown")
    if kernel and (op.end - op.begin < 5_000 or op.blocks < (multiprocessors or 0) / 2):
        return "underfilled"
    return _OWNER[op.work]


def _painted(ops: list[Op], multiprocessors: int | None, begin: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Yields (owner, begin, end) of each piece of the window between begins and ends; "" means the device is idle."""
    running = dict.fromkeys(BUSY_ORDER, 0)
    edges = [(op.begin, 1, owner_of(op, multiprocessors)) for op in ops]
    edges += [(op.end, -1, owner_of(op, multiprocessors)) for op in ops]
    at = begin
    for time, change, owner in [*sorted(edges), (end, 0, BUSY_ORDER[0])]:
        time = min(max(time, begin), end)
        if time > at:
            yield next((name for name in BUSY_ORDER if running[name]), ""), at, time
            at = time
        running[owner] += change


def _idle(op: Op | None, run: Run, begin: int, end: int) -> Iterator[tuple[str, int]]:
    """Yields (regime, ns) of a pause of the device; `op` is the operation that ends it."""
    if op is None:
        yield from _host(run, begin, end)
        return
    stalled = min(op.stall, end - begin)
    yield "unexplained", stalled
    end -= stalled
    if op.late:
        issued = min(max(op.issued, begin), end)
        yield from _host(run, begin, issued)
        yield REGIME_OF[op.phase or DISPATCH], end - issued
    else:
        yield "underfilled", end - begin


def _host(run: Run, begin: int, end: int) -> Iterator[tuple[str, int]]:
    """Yields (regime, ns) of the host's activities in [begin, end)."""
    known = 0
    for a, b, activity in _overlapping(run.activities, begin, end):
        part = min(b, end) - max(a, begin)
        known += part
        yield REGIME_OF[activity], part
    yield "unexplained", end - begin - known


def _overlapping(activities: tuple[tuple[int, int, str], ...], begin: int, end: int) -> Iterator[tuple[int, int, str]]:
    low, high = 0, len(activities)
    while low < high:
        middle = (low + high) // 2
        if activities[middle][1] <= begin:
            low = middle + 1
        else:
            high = middle
    while low < len(activities) and activities[low][0] < end:
        yield activities[low]
        low += 1
