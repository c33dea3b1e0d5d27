"""Where the time of a simulated run went, told from what the simulator knows, by none of the analyser's means.

**Busy.** Where a device operation runs, the owner is what it is known to be: a collective, a copy, or a kernel that was
made to be bound by arithmetic (compute), by bandwidth (memory), or too small (underfilled: over in less than 5 us, or
with fewer blocks than half of the multiprocessors). Of several at once the first in this order owns the time: compute,
memory, underfilled, unknown, communication, transfer. That is the contract's rule: only exposed collectives and copies
count.

**Idle.** Each pause ends with an operation, and the simulator knows why that one did not begin earlier:
- it had not been launched (`late`): up to its launch the pause is what the host was busy with, then latency, which is
  launch, or the phase (interruption, loader, a copy's staging) that the launch was part of;
- the device needed a moment between two queued operations: underfilled, which is where the contract puts it;
- the device served somebody else just then (`stall`): that part is unexplained.
The host's doings and their regimes are in REGIME_OF. The host's word for a phase (loader, interruption) covers all it
does inside. A pause at the end of the window is what the host was busy with.

**Sync.** The program is run again, the same in everything but that no call waits for the device or for a copy. Idle
dispatching that disappears was caused by waiting: it is sync, with the idle time inside the waits themselves. Idle time
of other kinds (a loader that would then have been hidden) stays with what the host did: the account names the nearest
cause.

**As recorded.** What leaves no row cannot be told from Python that runs between two operators: workloads give such
phases the doing `python` from the start, so that their truth is `host`. Where a recording does not tell how many
multiprocessors the device has, a kernel's blocks say nothing, and only its length can make it underfilled.
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
    """The account of a run of the program, in the window that the contract gives to recordings with this basis."""
    begin, end = window_of(run, basis)
    ns = account_of(run, multiprocessors, begin, end)
    unhindered = Machine(program, waits=False).run()
    without = account_of(unhindered, multiprocessors, *window_of(unhindered, basis))
    caused = max(ns.get("launch", 0) - without.get("launch", 0), 0)
    ns["launch"] = ns.get("launch", 0) - caused
    ns["sync"] = ns.get("sync", 0) + caused
    return Truth(ns, begin, end)


def window_of(run: Run, basis: str) -> tuple[int, int]:
    """The window by the contract: a step ends when the host has moved on and the device has done what it was given.

    `profiler_step`: the steps are the marks; `inferred`: they lie between the ends of the optimizer's rows. The first
    of three or more steps is left out: the profiler's start emptied the queue before it. `whole`: from the first to the
    last device operation.
    """
    ops = device_ops(run)
    if basis == "whole":
        return min(op.begin for op in ops), max(op.end for op in ops)
    if basis == "profiler_step":
        marks = sorted((row.begin, row.end) for row in run.rows if row.name.startswith("ProfilerStep"))
        edges = [begin for begin, _ in marks] + [marks[-1][1]]
    else:
        edges = sorted(row.end for row in run.rows if row.name.startswith("Optimizer.step"))
    first = 1 if len(edges) - 1 >= STEPS_TO_LOSE_ONE else 0
    ends = [max([edges[i], *(op.end for op in ops if edges[0] <= op.issued < edges[i])]) for i in (first, -1)]
    return ends[0], ends[1]


def device_ops(run: Run) -> list[Op]:
    """Operations of the device that the report is about: the one that has most."""
    devices = [op.device for op in run.ops]
    busiest = max(sorted(set(devices)), key=devices.count)
    return [op for op in run.ops if op.device == busiest]


def account_of(run: Run, multiprocessors: int | None, begin: int, end: int) -> dict[str, int]:
    """Nanoseconds of [begin, end) by regime, before the question what the waits have caused."""
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
    """What the time of an operation counts as, where nothing runs beside it."""
    kernel = op.work in ("contraction", "streaming", "unknown")
    if kernel and (op.end - op.begin < 5_000 or op.blocks < (multiprocessors or 0) / 2):
        return "underfilled"
    return _OWNER[op.work]


def _painted(ops: list[Op], multiprocessors: int | None, begin: int, end: int) -> Iterator[tuple[str, int, int]]:
    """The window cut at every begin and end, with the owner of each piece; "" where the device is idle."""
    running = dict.fromkeys(BUSY_ORDER, 0)
    turns = [(op.begin, 1, owner_of(op, multiprocessors)) for op in ops]
    turns += [(op.end, -1, owner_of(op, multiprocessors)) for op in ops]
    at = begin
    for time, change, owner in [*sorted(turns), (end, 0, BUSY_ORDER[0])]:
        time = min(max(time, begin), end)
        if time > at:
            yield next((name for name in BUSY_ORDER if running[name]), ""), at, time
            at = time
        running[owner] += change


def _idle(op: Op | None, run: Run, begin: int, end: int) -> Iterator[tuple[str, int]]:
    """A pause of the device by regime; `op` is the operation that ends it."""
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
    """What the host was busy with in [begin, end)."""
    known = 0
    for a, b, doing in _overlapping(run.doings, begin, end):
        part = min(b, end) - max(a, begin)
        known += part
        yield REGIME_OF[doing], part
    yield "unexplained", end - begin - known


def _overlapping(doings: tuple[tuple[int, int, str], ...], begin: int, end: int) -> Iterator[tuple[int, int, str]]:
    low, high = 0, len(doings)
    while low < high:
        middle = (low + high) // 2
        if doings[middle][1] <= begin:
            low = middle + 1
        else:
            high = middle
    while low < len(doings) and doings[low][0] < end:
        yield doings[low]
        low += 1
