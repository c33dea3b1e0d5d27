"""A simulated training as a flat list of instructions. Every duration is drawn before the program runs.

The same program can therefore run twice, with and without the host waiting for the device, with no other difference.
All times are int nanoseconds.
"""

from tb_bottleneck.base.measure import Record

# Host activities. The names are the simulator's own; truth.py maps them to regimes.
LOAD, INTERRUPT, ALLOCATE, WAIT = "load", "interrupt", "allocate", "wait"
COPY, DISPATCH, PYTHON = "copy", "dispatch", "python"

COMPUTE_STREAM, COMM_STREAM = 7, 20


class Kernel(Record, frozen=True):
    """A kernel. `work` is contraction, streaming, collective or unknown; `gap` is the device's pause before it.

    `stall` is a pause in which the device runs another process, which no recording shows;
    `bytes` is the message size of a collective.
    """

    name: str
    work: str
    ns: int
    blocks: int
    gap: int
    stall: int = 0
    bytes: int = 0


class Open(Record, frozen=True):
    """Begins a row on the current thread. `kind` is op, annotation or python; `phase` is the host activity inside."""

    kind: str
    name: str
    phase: str = ""


class Close(Record, frozen=True):
    """Ends the row opened last."""


class Spend(Record, frozen=True):
    """Host work that leaves no row."""

    ns: int
    activity: str = DISPATCH


class Launch(Record, frozen=True):
    """One call that launches kernels on a stream: one kernel, or all kernels of a graph."""

    kernels: tuple[Kernel, ...]
    cost: int
    latency: int
    stream: int = COMPUTE_STREAM
    device: int = 0
    call: str = "LaunchKernel"


class Copy(Record, frozen=True):
    """A copy call.

    `in_call` is what the call waits for: "" (nothing), "staging" (pageable memory to the device), or "end" of the copy
    (device to pageable memory, before torch 2.4).
    """

    direction: str
    bytes: int
    ns: int
    pinned: bool
    in_call: str
    cost: int
    latency: int
    device: int = 0


class Wait(Record, frozen=True):
    """A call that returns when the stream is done, or the whole device if `call` is DeviceSynchronize."""

    call: str
    cost: int
    lag: int
    device: int = 0


class Follow(Record, frozen=True):
    """cudaStreamWaitEvent: later work on `stream` begins after all work now queued on stream `after`."""

    stream: int
    after: int
    cost: int
    lag: int
    device: int = 0


class Fetch(Record, frozen=True):
    """A wait for the next batch of the worker processes."""

    cost: int


class Allocate(Record, frozen=True):
    """A driver call for memory. With `drains`, it waits for the device first, as cudaFree does."""

    call: str
    ns: int
    drains: bool
    device: int = 0


class Thread(Record, frozen=True):
    """Switches to the named thread, which drives the device from here on."""

    name: str


class Record(Record, frozen=True):
    """Start of the profiler: it waits for the device, and earlier events are not recorded."""


Instruction = Open | Close | Spend | Launch | Copy | Wait | Follow | Fetch | Allocate | Thread | Record


class Workers(Record, frozen=True):
    """The loader's worker processes: number, time per batch of one worker, and batches that each prefetches."""

    number: int
    load_ns: tuple[int, ...]
    prefetch: int = 2


class Program(Record, frozen=True):
    """The whole training."""

    instructions: tuple[Instruction, ...]
    workers: Workers | None = None
