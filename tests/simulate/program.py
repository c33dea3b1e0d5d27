"""What a simulated training does, as a flat list of instructions: every duration is drawn before anything runs.

So the same program can be run twice, with and without the host waiting for the device, and differ in nothing else.
All times are int nanoseconds.
"""

from dataclasses import dataclass

# What the host is busy with. The words are the simulator's own; truth.py says which regime each one is.
LOAD, INTERRUPT, ALLOCATE, WAIT = "load", "interrupt", "allocate", "wait"
COPY, DISPATCH, PYTHON = "copy", "dispatch", "python"

COMPUTE_STREAM, COMM_STREAM = 7, 20


@dataclass(frozen=True)
class Kernel:
    """A kernel to come. `work` is contraction, streaming, collective or unknown; `gap` is the device's pause before it.

    `stall` is a pause in which the device serves somebody else, which no recording shows;
    `bytes` is a collective's message.
    """

    name: str
    work: str
    ns: int
    blocks: int
    gap: int
    stall: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Open:
    """Begins a row on the current thread. `kind` is op, annotation or python; `phase` colours the host time inside."""

    kind: str
    name: str
    phase: str = ""


@dataclass(frozen=True)
class Close:
    """Ends the row that was opened last."""


@dataclass(frozen=True)
class Spend:
    """The host works for a while and records nothing about it."""

    ns: int
    doing: str = DISPATCH


@dataclass(frozen=True)
class Launch:
    """One call that puts kernels on a stream: one kernel, or all those of a graph."""

    kernels: tuple[Kernel, ...]
    cost: int
    latency: int
    stream: int = COMPUTE_STREAM
    device: int = 0
    call: str = "LaunchKernel"


@dataclass(frozen=True)
class Copy:
    """One call that copies.

    `in_call` says what the call itself waits for: nothing, staging (pageable to the device), or end, which is the
    copy's (pageable from the device, before torch 2.4).
    """

    direction: str
    bytes: int
    ns: int
    pinned: bool
    in_call: str
    cost: int
    latency: int
    device: int = 0


@dataclass(frozen=True)
class Wait:
    """A call that returns when the stream, or with `call` DeviceSynchronize the device, is done."""

    call: str
    cost: int
    lag: int
    device: int = 0


@dataclass(frozen=True)
class Follow:
    """cudaStreamWaitEvent: what comes next on `stream` begins after all that `after` holds by now."""

    stream: int
    after: int
    cost: int
    lag: int
    device: int = 0


@dataclass(frozen=True)
class Fetch:
    """Waits for the next batch of the worker processes."""

    cost: int


@dataclass(frozen=True)
class Allocate:
    """A call to the driver for memory. `drains`: it waits for the device first, as cudaFree does."""

    call: str
    ns: int
    drains: bool
    device: int = 0


@dataclass(frozen=True)
class Thread:
    """The named thread drives the device from here on."""

    name: str


@dataclass(frozen=True)
class Record:
    """The profiler starts: it waits for the device, and what was before is not recorded."""


Instruction = Open | Close | Spend | Launch | Copy | Wait | Follow | Fetch | Allocate | Thread | Record


@dataclass(frozen=True)
class Workers:
    """The loader's worker processes: how many, how long each batch takes one of them, batches prefetched per worker."""

    number: int
    load_ns: tuple[int, ...]
    prefetch: int = 2


@dataclass(frozen=True)
class Program:
    """The whole training."""

    instructions: tuple[Instruction, ...]
    workers: Workers | None = None
