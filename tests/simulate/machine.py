"""Runs a program on a host and its devices.

The host has one clock: only one of its threads drives the devices at a time. A device is a set of streams, and each
stream runs its operations in order, so the begin of an operation is known as soon as it is launched:

    begin = max(call + latency, end of the stream's last operation + gap, end of the awaited stream + lag)

`Op.late` is True if the first term is the largest: the device waited for the host. A stream holds at most QUEUE_LIMIT
operations that have not begun; a launch call blocks until there is room.
"""

from dataclasses import dataclass, field
from typing import get_args

from simulate.loader import Loader
from simulate.program import (
    ALLOCATE,
    COPY,
    DISPATCH,
    LOAD,
    WAIT,
    Allocate,
    Close,
    Copy,
    Fetch,
    Follow,
    Instruction,
    Kernel,
    Launch,
    Open,
    Program,
    Record,
    Spend,
    Thread,
    Wait,
)
from simulate.run import Op, Row, Run

QUEUE_LIMIT = 1024
# A copy call that waits for its copy returns this long after the copy ends.
COPY_RETURN_LAG = 4_000


@dataclass
class _Stream:
    free: int = 0
    follow: int = 0
    begins: list[int] = field(default_factory=list)


@dataclass
class _Opened:
    row: Open
    thread: str
    begin: int
    id: int


class Machine:
    """Runs one program once. With `waits=False`, no call waits for the device or for a copy."""

    def __init__(self, program: Program, waits: bool = True) -> None:
        self._program = program
        self._waits = waits
        self._now = 0
        self._thread = "main"
        self._ids = 0
        self._loader = Loader(program.workers) if program.workers else None
        self._streams: dict[tuple[int, int], _Stream] = {}
        self._opened: list[_Opened] = []
        self._operators = [0]  # the ids of those opened; 0 stands for none
        self._phase = ""  # of the outermost row that has one
        self._rows: list[Row] = []
        self._ops: list[Op] = []
        self._activities: list[tuple[int, int, str]] = []

    def run(self) -> Run:
        """Runs the program and returns everything after the last `Record`."""
        does = {kind: getattr(self, f"_do_{kind.__name__.lower()}") for kind in get_args(Instruction)}
        for instruction in self._program.instructions:
            does[type(instruction)](instruction)
        return Run(tuple(self._rows), tuple(self._ops), tuple(self._activities))

    # --- time ---

    def _pass(self, until: int, activity: str) -> None:
        if until <= self._now:
            return
        self._activities.append((self._now, until, self._phase or activity))
        self._now = until

    def _stream(self, device: int, stream: int) -> _Stream:
        return self._streams.setdefault((device, stream), _Stream())

    def _device_free(self, device: int) -> int:
        return max((stream.free for (index, _), stream in self._streams.items() if index == device), default=0)

    def _id(self) -> int:
        self._ids += 1
        return self._ids

    def _call(self, name: str, begin: int, call: int) -> None:
        self._rows.append(Row("call", name, self._thread, begin, self._now, call, self._operators[-1]))

    # --- instructions ---

    def _do_open(self, row: Open) -> None:
        self._opened.append(_Opened(row, self._thread, self._now, self._id()))
        self._phase = self._phase or row.phase
        if row.kind == "op":
            self._operators.append(self._opened[-1].id)

    def _do_close(self, _: Close) -> None:
        opened = self._opened.pop()
        row = opened.row
        if row.kind == "op":
            self._operators.pop()
        if row.phase:
            self._phase = next((outer.row.phase for outer in self._opened if outer.row.phase), "")
        self._rows.append(Row(row.kind, row.name, opened.thread, opened.begin, self._now, opened.id, opened.id))

    def _do_spend(self, spend: Spend) -> None:
        self._pass(self._now + spend.ns, spend.activity)

    def _do_thread(self, thread: Thread) -> None:
        self._thread = thread.name

    def _do_record(self, _: Record) -> None:
        self._now = max([self._now, *(stream.free for stream in self._streams.values())])
        self._rows, self._ops, self._activities = [], [], []

    def _do_fetch(self, fetch: Fetch) -> None:
        if self._loader is None:
            raise ValueError("a program that fetches needs workers")
        self._pass(self._loader.take(self._now), LOAD)
        self._pass(self._now + fetch.cost, LOAD)

    def _do_launch(self, launch: Launch) -> None:
        begin, call = self._now, self._id()
        stream = self._stream(launch.device, launch.stream)
        if len(stream.begins) >= QUEUE_LIMIT:
            self._pass(stream.begins[-QUEUE_LIMIT], DISPATCH)
        issued = self._now
        for kernel in launch.kernels:
            self._enqueue(kernel, stream, launch, issued, call)
        self._pass(issued + launch.cost, DISPATCH)
        self._call(launch.call, begin, call)

    def _enqueue(self, kernel: Kernel, stream: _Stream, launch: Launch, issued: int, call: int) -> None:
        ready = max(stream.free + kernel.gap, stream.follow)
        begin = max(issued + launch.latency, ready) + kernel.stall
        stream.free = begin + kernel.ns
        stream.begins.append(begin)
        self._ops.append(
            Op(
                name=kernel.name,
                work=kernel.work,
                device=launch.device,
                stream=launch.stream,
                begin=begin,
                end=stream.free,
                issued=issued,
                late=issued + launch.latency > ready,
                stall=kernel.stall,
                blocks=kernel.blocks,
                bytes=kernel.bytes,
                call=call,
                op=self._operators[-1],
                phase=self._phase,
            )
        )

    def _do_copy(self, copy: Copy) -> None:
        begin, call = self._now, self._id()
        stream = self._stream(copy.device, 7)
        staged = copy.in_call == "staging" and self._waits
        if staged:
            # The driver waits for the stream, then fills its staging buffer in chunks while the device empties it.
            self._pass(stream.free, WAIT)
            self._pass(self._now + copy.cost, COPY)
        issued = self._now
        ready = max(stream.free + 1_000, stream.follow)
        start = max(issued + copy.latency, ready)
        stream.free = start + copy.ns
        stream.begins.append(start)
        side = "Pinned" if copy.pinned else "Pageable"
        route = f"{side} -> Device" if copy.direction == "HtoD" else f"Device -> {side}"
        self._ops.append(
            Op(
                name=f"Memcpy {copy.direction} ({route})",
                work="host_copy",
                device=copy.device,
                stream=7,
                begin=start,
                end=stream.free,
                issued=issued,
                late=start > ready,
                stall=0,
                blocks=0,
                bytes=copy.bytes,
                call=call,
                op=self._operators[-1],
                phase=COPY if staged else self._phase,
            )
        )
        if staged:
            # The call returns when the last chunk is in the staging buffer, before the device has it.
            self._pass(stream.free - copy.cost, COPY)
        elif copy.in_call == "end" and self._waits:
            self._pass(stream.free + COPY_RETURN_LAG, WAIT)
        else:
            self._pass(issued + copy.cost, COPY)
        self._call("MemcpyAsync", begin, call)

    def _do_wait(self, wait: Wait) -> None:
        begin = self._now
        whole = wait.call == "DeviceSynchronize"
        done = self._device_free(wait.device) if whole else self._stream(wait.device, 7).free
        if done > self._now and self._waits:
            self._pass(done + wait.lag, WAIT)
        self._pass(max(self._now, begin + wait.cost), WAIT)
        self._call(wait.call, begin, self._id())

    def _do_follow(self, follow: Follow) -> None:
        begin = self._now
        stream = self._stream(follow.device, follow.stream)
        stream.follow = max(stream.follow, self._stream(follow.device, follow.after).free + follow.lag)
        self._pass(begin + follow.cost, DISPATCH)
        self._call("StreamWaitEvent", begin, self._id())

    def _do_allocate(self, allocate: Allocate) -> None:
        begin = self._now
        if allocate.drains:
            self._pass(self._device_free(allocate.device), ALLOCATE)
        self._pass(self._now + allocate.ns, ALLOCATE)
        self._call(allocate.call, begin, self._id())
