"""Writes the timelines of a simulated job as Kineto traces, with the arguments of collectives as torch writes them."""

import json
from pathlib import Path
from typing import Any

from simulate.jobs.as_summaries import EPOCH_NS, operation_on
from simulate.jobs.execution import Row, Timeline
from simulate.jobs.program import Job, Work

US = 1_000
_BEFORE_NS = 100_000_000
_LAUNCH_US, _LAUNCHES_US = 8, 40
_WIDTH = 64
_HOST_ROWS = {
    "input": ("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
    "host": ("python_function", "train.py(10): augment"),
    "interruption": ("python_function", "torch/serialization.py(943): save"),
    "collection": ("python_function", "Python GC"),
}
_KERNELS = (
    ("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n", 0.0, 0.6),
    ("void at::native::vectorized_layer_norm_kernel", 0.6, 0.8),
    ("void at::native::vectorized_elementwise_kernel", 0.8, 1.0),
)
"""Kernels of one piece of work, with their shares of its time."""

_ANNOTATIONS = {"allreduce": "nccl:all_reduce", "all_to_allv": "nccl:all_to_all"}


def write_traces(job: Job, lines: list[Timeline], folder: Path) -> list[Path]:
    """Writes one trace per rank, and returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for rank, line in enumerate(lines):
        path = folder / f"rank{rank}.pt.trace.json"
        path.write_text(json.dumps(trace_of(job, rank, line)))
        files.append(path)
    return files


def trace_of(job: Job, rank: int, line: Timeline) -> dict[str, Any]:
    """Returns the trace of one rank."""
    groups = [group for group in job.groups if rank in group.ranks]
    config = [
        {"pg_name": group.name, "pg_desc": group.description, "pg_size": len(group.ranks), "ranks": list(group.ranks)}
        for group in groups
    ]
    return {
        "schemaVersion": 1,
        "record_shapes": 1,
        "with_stack": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}],
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": job.size, "pg_config": config},
        "host_name": f"host{job.hosts[rank]}",
        "baseTimeNanoseconds": EPOCH_NS,
        "traceEvents": _Writer(job, rank, line).events(),
    }


class _Writer:
    """Writes the events in the order of the rank's program. The host launches ahead of the device."""

    def __init__(self, job: Job, rank: int, line: Timeline) -> None:
        self._job, self._rank, self._line = job, rank, line
        self._skew = _BEFORE_NS + (job.skew[job.hosts[rank]] if job.skew else 0)
        self._events: list[dict[str, Any]] = []
        self._host = 0.0
        self._link = 0
        self._sequences: dict[tuple[str, bool], int] = {}

    def events(self) -> list[dict[str, Any]]:
        line = self._line
        edges = [*(at for _, at in line.marks), line.end]
        for (number, begin), end in zip(line.marks, edges[1:], strict=True):
            self._add("user_annotation", f"ProfilerStep#{number}", begin, end)
        items: list[tuple[float, int, Any]] = [(begin, 1, (begin, end, work)) for begin, end, work, _ in line.work]
        items += [(row.ready, 0, row) for row in line.rows]
        for _, _, item in sorted(items, key=lambda entry: entry[:2]):
            if isinstance(item, Row):
                self._communication(item)
            else:
                self._work(*item)
        return self._events

    def _work(self, begin: float, end: float, work: Work) -> None:
        if end - begin < 2 * _LAUNCHES_US * US:
            return
        if work.kind != "device":
            # What follows is launched in the last part of the time in which the host keeps the device idle.
            self._add(*_HOST_ROWS[work.kind], begin, end - (_LAUNCHES_US + 1) * US)
            self._host = end - _LAUNCHES_US * US
            return
        dims = [[max(work.elements // _WIDTH, 1), _WIDTH], [_WIDTH, _WIDTH]]
        args = {"Input Dims": dims, "Input type": ["float", "float"]}
        call = self._call(begin)
        self._add("cpu_op", "aten::mm", call - US, call + 3 * US, **args)
        grid = {"grid": [max(work.elements // 1000, 1), 1, 1], "device": 0, "correlation": self._link}
        for name, first, last in _KERNELS:
            span = (begin + first * (end - begin), begin + last * (end - begin))
            self._add("kernel", name, *span, stream=7, **grid)

    def _communication(self, row: Row) -> None:
        args, call = self._arguments(row), self._call(row.start)
        name = _ANNOTATIONS.get(args["Collective name"], f"nccl:{args['Collective name']}")
        self._add("cpu_op", "record_param_comms", call - 2 * US, call + 4 * US, **args)
        self._add("user_annotation", name, call - US, call + 3 * US)
        where = {"device": 0, "correlation": self._link, "grid": [24, 1, 1]}
        self._add("kernel", "ncclDevKernel_Generic(ncclDevComm*)", row.start, row.end, row.comm.lane, **where, **args)

    def _arguments(self, row: Row) -> dict[str, Any]:
        comm = row.comm
        group = next(group for group in self._job.groups if group.name == comm.group)
        counter = (comm.group, comm.operation == "p2p")
        self._sequences[counter] = sequence = self._sequences.get(counter, -1) + 1
        args = {
            "Collective name": operation_on(self._rank, row), "In msg nelems": comm.bytes // 4,
            "Out msg nelems": comm.bytes // 4, "Group size": len(group.ranks), "dtype": "Float",
            "In split size": str(list(comm.splits.get(self._rank, ()))), "Out split size": "[]",
            "Process Group Name": group.name, "Process Group Description": group.description,
            "Process Group Ranks": _cut(group.ranks),
        }  # fmt: skip
        if self._job.sequences:
            args["Seq"] = sequence
        if comm.operation == "p2p":
            side = "Dst Rank" if comm.ranks[0] == self._rank else "Src Rank"
            args[side] = next(rank for rank in comm.ranks if rank != self._rank)
        return args

    def _call(self, start: float) -> float:
        """Adds the launch of an operation, and returns its time."""
        self._host = min(self._host + _LAUNCH_US * US, start - 3 * US)
        self._link += 1
        self._add("cuda_runtime", "cudaLaunchKernel", self._host, self._host + 2 * US, correlation=self._link)
        return self._host

    def _add(self, category: str, name: str, begin: float, end: float, stream: int | None = None, **args: Any) -> None:
        first, last = round(begin) + self._skew, round(end) + self._skew
        pid, tid = (1, 1) if stream is None else (0, stream)
        self._events.append({
            "ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": first / US,
            "dur": (last - first) / US, "args": {**args, **({"stream": stream} if stream is not None else {})},
        })  # fmt: skip


def _cut(ranks: tuple[int, ...]) -> str:
    """Returns the ranks as Kineto writes them: at most 30."""
    shown = ", ".join(map(str, ranks[:30]))
    return f"[{shown}, ...]" if len(ranks) > 30 else f"[{shown}]"
