"""Writes a simulated run as Kineto JSON, in the dialects of several torch versions."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec.json

from simulate.pieces import MULTIPROCESSORS
from simulate.run import Op, Row, Run

PROCESS = 4242
_TIDS = {"main": 4242, "autograd": 4311, "pin": 4377, "watchdog": -549452224}
EPOCH_NS = 1_711_964_646_000_000_000


@dataclass(frozen=True)
class Dialect:
    """The trace format of a torch version.

    `tick` is the time resolution in ns; with `based`, times are relative to baseTimeNanoseconds. With `header`, the
    trace describes the device, including its number of multiprocessors.
    """

    name: str
    categories: dict[str, str]
    tick: int = 1
    based: bool = False
    prefix: str = "cuda"
    string_tids: bool = False
    external: str = "External id"
    header: bool = True

    def stream(self, stream: int) -> int:
        """Returns the stream's number in the trace: the default stream is 7 in CUDA and 0 in ROCm."""
        return stream - 7 if self.prefix == "hip" else stream


_NEW = {
    "op": "cpu_op",
    "annotation": "user_annotation",
    "python": "python_function",
    "call": "cuda_runtime",
    "kernel": "kernel",
    "memcpy": "gpu_memcpy",
}
_OLD = {
    "op": "Operator",
    "annotation": "Operator",
    "python": "Python",
    "call": "Runtime",
    "kernel": "Kernel",
    "memcpy": "Memcpy",
}

DIALECTS = (
    Dialect("torch 1.8", _OLD, tick=1000, string_tids=True, external="external id", header=False),
    Dialect("torch 1.12", _NEW, tick=1000),
    Dialect("torch 2.1", _NEW),
    Dialect("torch 2.4", _NEW, based=True),
    Dialect("torch 2.4, ROCm", _NEW, based=True, prefix="hip"),
)


@dataclass(frozen=True)
class Recording:
    """Recording options. `distributed` adds distributedInfo; `noise` adds irrelevant rows.

    `skew_ns` is how far the device's clock is ahead of the host's, or behind.
    """

    dialect: Dialect
    steps: bool = True
    stacks: bool = True
    optimizer: bool = True
    distributed: bool = False
    noise: bool = False
    skew_ns: int = 0


def kineto_json(run: Run, recording: Recording) -> str:
    """Returns the trace file's text."""
    writer = _Writer(recording)
    events = [
        *(writer.host(row) for row in run.rows if writer.holds(row)),
        *(writer.device(op) for op in run.ops),
        *writer.noise(run),
        *writer.thread_names(),
    ]
    head = ", ".join(f"{_text(key)}: {_text(value)}" for key, value in _header(run, recording).items())
    return "{" + head + ',\n"traceEvents": [\n' + ",\n".join(events) + "\n]}"


def _header(run: Run, recording: Recording) -> dict[str, Any]:
    head: dict[str, Any] = {"schemaVersion": 1}
    if recording.dialect.header:
        name = "AMD Instinct MI210" if recording.dialect.prefix == "hip" else "NVIDIA A100-SXM4-40GB"
        devices = sorted({op.device for op in run.ops})
        head["deviceProperties"] = [{"id": index, "name": name, "numSms": MULTIPROCESSORS} for index in devices]
    if recording.dialect.prefix == "hip":
        head["hip_runtime_version"] = 60_443_483
    if recording.stacks:
        head["with_stack"] = 1
    if recording.distributed:
        head["distributedInfo"] = {"backend": "nccl", "rank": 0, "world_size": 8}
    if recording.dialect.based:
        head["baseTimeNanoseconds"] = EPOCH_NS
    return head


_encoder = msgspec.json.Encoder()  # four times as fast as json.dumps, which took a quarter of a simulation


def _text(value: Any) -> str:
    return _encoder.encode(value).decode()


class _Writer:
    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._dialect = recording.dialect

    def holds(self, row: Row) -> bool:
        """Returns True if the recording contains this row."""
        if row.name.startswith("ProfilerStep"):
            return self._recording.steps
        if row.name.startswith("Optimizer."):
            return self._recording.optimizer
        return row.kind != "python" or self._recording.stacks

    def host(self, row: Row) -> str:
        """Writes a host row."""
        dialect = self._dialect
        name = dialect.prefix + row.name if row.kind == "call" else row.name
        ids: dict[str, Any] = {"correlation": row.id} if row.kind == "call" else {}
        if row.op:
            ids[dialect.external] = row.op
        tid: int | str = _TIDS[row.thread]
        event = {"cat": dialect.categories[row.kind], "name": name, "pid": PROCESS, "args": ids}
        event["tid"] = str(tid) if dialect.string_tids else tid
        return self._complete(event, row.begin, row.end)

    def device(self, op: Op) -> str:
        """Writes a device operation."""
        dialect = self._dialect
        stream = dialect.stream(op.stream)
        args: dict[str, Any] = {"device": op.device, "context": 1, "stream": stream, "correlation": op.call}
        if op.op:
            args[dialect.external] = op.op
        if op.work == "host_copy":
            args["bytes"] = op.bytes
        else:
            args |= {"grid": [op.blocks, 1, 1], "block": [256, 1, 1]}
            if op.bytes:
                args |= {"Collective name": "allreduce", "In msg nelems": op.bytes // 4, "dtype": "Float"}
                args |= {"Out msg nelems": op.bytes // 4, "Group size": 8}
            if dialect.prefix == "cuda" and dialect.header:
                args["warps per SM"] = op.blocks * 8 / MULTIPROCESSORS
        name = op.name
        if dialect.prefix == "hip" and op.work == "host_copy":
            name = name.replace("Pageable", "Host").replace("Pinned", "Host")
        kind = "memcpy" if op.work == "host_copy" else "kernel"
        tid: int | str = f"stream {stream}" if dialect.string_tids else stream
        event = {"cat": dialect.categories[kind], "name": name, "pid": op.device, "tid": tid, "args": args}
        skew = self._recording.skew_ns
        return self._complete(event, op.begin + skew, op.end + skew)

    def noise(self, run: Run) -> Iterator[str]:
        """Yields other rows that real traces contain: the profiler's own rows, flows, and background threads.

        NCCL's watchdog polls an event, and the loader's pinning thread allocates memory from time to time.
        """
        if not self._recording.noise or not run.activities:
            return
        begin, end = run.activities[0][0], run.activities[-1][1]
        span = {"cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler", "args": {}}
        yield self._complete(span, begin - 50_000, end + 50_000)
        buffer = {"cat": "overhead", "name": "Activity Buffer Request", "pid": -1, "tid": 0, "args": {}}
        yield self._complete(buffer, begin + 10_000, begin + 900_000)
        for op in run.ops[::20]:
            annotation = {"cat": "gpu_user_annotation", "name": "ProfilerStep#3", "pid": op.device, "tid": op.stream}
            yield self._complete({**annotation, "args": {"External id": 1}}, op.begin - 1, op.end + 50_000)
            flow = {"ph": "f", "cat": "ac2g", "name": "ac2g", "pid": op.device, "tid": op.stream}
            yield _text({**flow, "id": op.call, "bp": "e", "ts": op.begin // 1000})
        for number, at in enumerate(range(begin, end, max((end - begin) // 200, 50_000))):
            yield self.host(Row("call", "EventQuery", "watchdog", at, at + 2_500, 10_000_000 + number, 0))
            if number % 10 == 0:
                yield self.host(Row("call", "HostAlloc", "pin", at, at + 400_000, 20_000_000 + number, 0))

    def thread_names(self) -> Iterator[str]:
        """Yields the metadata rows."""
        for name, tid in (("python", _TIDS["main"]), ("pt_autograd_0", _TIDS["autograd"])):
            tid_text = str(tid) if self._dialect.string_tids else tid
            row = {"ph": "M", "name": "thread_name", "pid": PROCESS, "tid": tid_text, "ts": 0, "args": {"name": name}}
            yield _text(row)

    def _complete(self, event: dict[str, Any], begin: int, end: int) -> str:
        start, stop = self._tick(begin), self._tick(end)
        times = f'"ph": "X", "ts": {self._us(start)}, "dur": {self._us(stop - start)}, '
        return "{" + times + _text(event)[1:]

    def _tick(self, ns: int) -> int:
        shifted = ns if self._dialect.based else ns + EPOCH_NS
        return shifted - shifted % self._dialect.tick

    def _us(self, ns: int) -> str:
        """Formats microseconds from integers: a float cannot hold microseconds since 1970 with fractions."""
        return str(ns // 1000) if self._dialect.tick == 1000 else f"{ns // 1000}.{ns % 1000:03}"
