"""Declares the columns of the exported tables. The page docs/export.md lists them; a test compares both."""

from typing import NamedTuple

from tb_bottleneck.regime import REGIMES


class Column(NamedTuple):
    """A column: its type (text, int, float), unit, and meaning. `text` columns are dictionaries."""

    name: str
    type: str
    unit: str
    meaning: str


_RECORDING = (
    Column("recording", "text", "", "run and file of the recording; the same in all tables"),
    Column("rank", "int", "", "rank of the process; null if it is not recorded"),
)
_STEP = Column("step", "int", "", "judged step in which it starts, from 0; null outside the judged window")
_START = Column("start_ns", "int", "ns", "start, on the recording's own clock")
_DURATION = Column("duration_ns", "int", "ns", "time taken")

EVENTS = (
    *_RECORDING,
    _START,
    _DURATION,
    Column("kind", "text", "", "cpu_op, annotation, python, call, kernel, memcpy, memset, overhead or other"),
    Column("name", "text", "", "name of the operator, function, call or kernel"),
    Column("process", "text", "", "process id; for device work the device's"),
    Column("thread", "text", "", "thread id; for device work the stream"),
    Column("thread_name", "text", "", "name of the thread; empty if it is not recorded"),
    Column("correlation", "int", "", "links a runtime call to its device work; 0 if there is no link"),
    Column("sequence", "int", "", "autograd's number: a backward operator has that of its forward operator; else 0"),
    Column("shapes", "text", "", "shapes of the inputs of an operator as JSON; empty if they are not recorded"),
    Column("types", "text", "", "types of the inputs as JSON; empty if they are not recorded"),
    _STEP,
)
KERNELS = (
    *_RECORDING,
    _START,
    _DURATION,
    Column("name", "text", "", "name of the kernel, copy or fill"),
    Column("work", "text", "", "contraction, streaming, collective, upload, download, device_copy, peer_copy, unknown"),
    Column("device", "int", "", "index of the device"),
    Column("stream", "text", "", "the stream"),
    Column("bytes", "int", "bytes", "size of a copy, a fill or a collective's message; else 0"),
    Column("blocks", "int", "", "thread blocks of the grid; 0 if it is not recorded"),
    Column("call", "text", "", "runtime call that launched it; null if it is not recorded"),
    Column("call_start_ns", "int", "ns", "start of that call"),
    Column("call_thread", "text", "", "thread of that call"),
    Column("operator", "text", "", "innermost operator around that call; null if there is none"),
    _STEP,
)
COLLECTIVES = (
    *_RECORDING,
    _START,
    _DURATION,
    Column(
        "operation", "text", "", "all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send, recv, other, ..."
    ),
    Column("group", "text", "", "name of the process group; empty if it is not recorded"),
    Column("group_size", "int", "", "ranks of the group; 0 if it is not recorded"),
    Column("sequence", "int", "", "number of the collective in its group; -1 if it is not recorded"),
    Column("bytes", "int", "bytes", "size of the larger side; 0 if it is not recorded"),
    Column("peer", "int", "", "the other rank of a message; -1 if there is none"),
    _STEP,
)
RANKS = (
    *_RECORDING,
    Column("world_size", "int", "", "ranks of the job; null if it is not recorded"),
    Column("host", "text", "", "hash of the host's name; empty if it is not recorded"),
    Column("device", "text", "", "name of the device"),
    Column("health", "text", "", "ok, degraded, incomplete or unreadable"),
    Column("verdict", "text", "", "regime of the verdict; null if there is none"),
    Column("severity", "text", "", "critical, warning, info or none; null without a verdict"),
    Column("headline", "text", "", "the verdict as a sentence; null without one"),
    Column("steps", "int", "", "judged steps; 0 if nothing could be measured"),
    Column("window_ns", "int", "ns", "length of the judged window"),
    Column("step_mean_ns", "float", "ns", "mean step"),
    Column("events", "int", "", "rows in the table of events"),
    Column("lost", "int", "", "events and other parts of the file that could not be used"),
    *(Column(f"{regime.value}_ns", "float", "ns", f"time per step: {regime.label}") for regime in REGIMES),
)
TABLES = {"events": EVENTS, "kernels": KERNELS, "collectives": COLLECTIVES, "ranks": RANKS}
