"""Makes traces from timelines drawn in text, which show what a training in a test did.

    step    aaaaaaaaaabbbbbbbbbb     one letter per step: ProfilerStep#0, ProfilerStep#1
    loader  ####......####......     DataLoader.__next__ in the main thread
    op      ....##........##....     operators
    launch  ....|.........|.....     launching calls, in the order of the kernels
    gpu     .....#####.....#####     kernels: one per run of one letter

A column is `unit_us` microseconds. `.` is empty; repeated equal characters are one event. Rows:

    step loader save op python          host rows of the main thread (save is torch.save's Python frame)
    workers handover                    DataLoader.__next__ with workers, and opening the memory of a tensor in it
    dispatch                            dispatching of many operators, as one row: a long `op` without a call computes
    launch sync malloc                  runtime calls: a launch is one column, the others are runs
    backward wait                       operators and waits of the autograd thread
    gpu small nccl h2d d2h d2d          device rows: matrix products, kernels of one block, collectives, copies

Kernels and copies are launched by the marks of the `launch` row in order of begin: `|` by the main thread, `/` by the
autograd thread, `x` by a call that was not recorded. Without that row each is launched 5 us before it begins, by a call
of 3 us.
"""

import json
import tempfile
from itertools import groupby
from pathlib import Path
from typing import Any

from tb_bottleneck.trace.trace import Trace, load

HOST, AUTOGRAD, GPU, STREAM, COMM_STREAM = 100, 101, 0, 7, 20

HOST_ROWS = {
    "loader": ("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
    "workers": ("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
    "save": ("python_function", "torch/serialization.py(943): save"),
    "op": ("cpu_op", "aten::linear"),
    "dispatch": ("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0"),
    "python": ("python_function", "train.py(10): augment"),
    "handover": ("python_function", "torch/multiprocessing/reductions.py(537): rebuild_storage_fd"),
    "sync": ("cuda_runtime", "cudaStreamSynchronize"),
    "malloc": ("cuda_runtime", "cudaMalloc"),
}
AUTOGRAD_ROWS = {
    "backward": ("cpu_op", "autograd::engine::evaluate_function: MmBackward0"),
    "wait": ("cuda_runtime", "cudaStreamSynchronize"),
}
DEVICE_ROWS = {
    "gpu": ("kernel", "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16", STREAM, [1024, 1, 1]),
    "small": ("kernel", "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16", STREAM, [1, 1, 1]),
    "stream": ("kernel", "void at::native::vectorized_elementwise_kernel<4>", STREAM, [1024, 1, 1]),
    "nccl": ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", COMM_STREAM, [24, 1, 1]),
    "h2d": ("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", STREAM, None),
    "d2h": ("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", STREAM, None),
    "d2d": ("gpu_memcpy", "Memcpy DtoD (Device -> Device)", STREAM, None),
}


def drawn(drawing: str, unit_us: float = 100.0, **header: Any) -> dict[str, Any]:
    """Returns the drawing as a Kineto trace. `header` adds top-level keys."""
    rows = dict(line.split() for line in drawing.strip().splitlines())
    events: list[dict[str, Any]] = []
    for name, row in rows.items():
        if name == "step":
            events += [
                _event("user_annotation", f"ProfilerStep#{number}", run, unit_us)
                for number, run in enumerate(_runs(row))
            ]
        elif name in HOST_ROWS:
            events += [_event(*HOST_ROWS[name], run, unit_us) for run in _runs(row)]
        elif name in AUTOGRAD_ROWS:
            events += [_event(*AUTOGRAD_ROWS[name], run, unit_us) | {"tid": AUTOGRAD} for run in _runs(row)]
    events += _device_events(rows, unit_us)
    properties = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}]
    stacks = int(any(name in rows for name in ("save", "python")))
    return {"schemaVersion": 1, "deviceProperties": properties, "with_stack": stacks, **header, "traceEvents": events}


def dependency(number: int, before: dict[str, Any], after: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the flow that torch 2.15 writes between two operations in a CUDA graph."""
    flow = {"cat": "ac2g", "name": "ac2g", "id": (1 << 40) + number}
    begin = {"ph": "s", "pid": before["pid"], "tid": before["tid"], "ts": before["ts"] + before["dur"]}
    return [flow | begin, flow | {"ph": "f", "bp": "e", "pid": after["pid"], "tid": after["tid"], "ts": after["ts"]}]


def drawn_trace(drawing: str, unit_us: float = 100.0, **header: Any) -> Trace:
    """Returns the drawing, read by the real reader."""
    return loaded(drawn(drawing, unit_us, **header))


def loaded(trace: dict[str, Any]) -> Trace:
    """Returns a Kineto trace, read by the real reader."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "drawn.pt.trace.json"
        path.write_text(json.dumps(trace))
        return load(str(path))


def _runs(row: str) -> list[tuple[int, int]]:
    """Returns (first column, number of columns) of each sequence of equal characters."""
    runs, at = [], 0
    for character, group in groupby(row):
        length = len(list(group))
        if character != ".":
            runs.append((at, length))
        at += length
    return runs


def _event(category: str, name: str, run: tuple[int, int], unit_us: float, **args: Any) -> dict[str, Any]:
    begin, length = run
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": HOST,
        "tid": HOST,
        "ts": begin * unit_us,
        "dur": length * unit_us,
        "args": args,
    }


def _device_events(rows: dict[str, str], unit_us: float) -> list[dict[str, Any]]:
    work = sorted((run, name) for name in DEVICE_ROWS if name in rows for run in _runs(rows[name]))
    marks = [(at, mark) for at, mark in enumerate(rows.get("launch", "")) if mark != "."]
    events = []
    for number, (run, name) in enumerate(work, 1):
        category, kernel, stream, grid = DEVICE_ROWS[name]
        event = _event(category, kernel, run, unit_us, correlation=number, device=GPU, stream=stream, bytes=1 << 20)
        if grid:
            event["args"]["grid"] = grid
        event["pid"], event["tid"] = GPU, stream
        call = _event("cuda_runtime", _call(category), (0, 0), unit_us, correlation=number)
        at, mark = marks[number - 1] if marks else (0, "|")
        call["ts"], call["dur"] = (at * unit_us, unit_us) if marks else (max(run[0] * unit_us - 5, 0), 3)
        call["tid"] = AUTOGRAD if mark == "/" else HOST
        events += [event] if mark == "x" else [event, call]
    return events


def _call(category: str) -> str:
    return "cudaLaunchKernel" if category == "kernel" else "cudaMemcpyAsync"
