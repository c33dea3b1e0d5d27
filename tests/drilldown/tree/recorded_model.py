"""A recorded training step of a model of two layers, written event by event."""

import json
from pathlib import Path
from typing import Any

from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.trace.trace import load

MAIN, AUTOGRAD = 100, 101
GEMM = "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16"


class Recorder:
    """Collects events; times are in microseconds."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._correlation = 0

    def row(self, category: str, name: str, begin: float, end: float, thread: int = MAIN, **args: Any) -> None:
        """Adds a row of the host."""
        self.events.append(_event(category, name, begin, end, MAIN, thread, args))

    def kernel(self, name: str, call: float, begin: float, end: float, thread: int = MAIN, device: int = 0) -> None:
        """Adds a kernel with the call that launches it."""
        self._correlation += 1
        args = {"correlation": self._correlation}
        self.events.append(_event("cuda_runtime", "cudaLaunchKernel", call, call + 4, MAIN, thread, args))
        self.lost_kernel(name, begin, end, device, **args)

    def lost_kernel(self, name: str, begin: float, end: float, device: int = 0, **args: Any) -> None:
        """Adds a kernel without the call that launches it."""
        args |= {"device": device, "stream": 7, "grid": [1024, 1, 1]}
        self.events.append(_event("kernel", name, begin, end, device, 7, args))

    def inspected(self, folder: Path) -> InspectedTrace:
        """Returns the recording, read from a file in a folder."""
        devices = [{"id": index, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108} for index in (0, 1)]
        path = folder / "model.pt.trace.json"
        path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": devices, "traceEvents": self.events}))
        return InspectedTrace(load(str(path)))


def _event(
    category: str, name: str, begin: float, end: float, process: int, thread: int, args: dict[str, Any]
) -> dict[str, Any]:
    times = {"ts": begin, "dur": end - begin}
    return {"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread, **times, "args": args}


def record_step(recorder: Recorder, begin: float, number: int, modules: str = "python_function") -> None:
    """Records one step of 2000 us: two layers forward, a loss, the backward pass on its own thread, an optimizer.

    The device works in 1000 us of it. Each layer takes 100 us forward and 200 us backward; the loss takes 100 us, the
    optimizer 300 us.
    """
    at = begin
    recorder.row("user_annotation", f"ProfilerStep#{number}", at, at + 2000)
    recorder.row("python_function", "train.py(30): step", at, at + 1990)
    recorder.row(modules, "nn.Module: Net_0", at + 10, at + 400)
    for layer, start in ((0, at + 20), (1, at + 200)):
        recorder.row(modules, f"nn.Module: Linear_{layer}", start, start + 150)
        recorder.row("python_function", f"model.py({10 + layer}): forward", start + 1, start + 149)
        recorder.row("cpu_op", "aten::linear", start + 2, start + 100, **{"Sequence number": 2 * number + layer + 1})
        recorder.row("cpu_op", "aten::addmm", start + 10, start + 90, **{"Sequence number": 2 * number + layer + 1})
        recorder.kernel(GEMM, start + 20, start + 30, start + 130)
    recorder.row("cpu_op", "aten::mse_loss", at + 410, at + 450)
    recorder.kernel("void at::native::vectorized_elementwise_kernel<4>", at + 420, at + 440, at + 540)
    recorder.row("python_function", "torch/autograd/__init__.py(100): backward", at + 460, at + 1000)
    for layer, start in ((1, at + 500), (0, at + 750)):
        name, sequence = "autograd::engine::evaluate_function: AddmmBackward0", 2 * number + layer + 1
        recorder.row("cpu_op", name, start, start + 100, AUTOGRAD, **{"Sequence number": sequence})
        recorder.row("cpu_op", "AddmmBackward0", start + 1, start + 99, AUTOGRAD, **{"Sequence number": sequence})
        recorder.row("cpu_op", "aten::mm", start + 10, start + 90, AUTOGRAD)
        recorder.kernel(GEMM, start + 20, start + 50, start + 250, AUTOGRAD)
    recorder.row("user_annotation", "Optimizer.step#SGD.step", at + 1100, at + 1700)
    recorder.row("cpu_op", "aten::_foreach_add_", at + 1150, at + 1200)
    recorder.kernel("void at::native::multi_tensor_apply_kernel<1>", at + 1160, at + 1200, at + 1500)


def recorded_steps(steps: int = 3, modules: str = "python_function") -> Recorder:
    """Returns a recorder with some steps of 2000 us."""
    recorder = Recorder()
    for number in range(steps):
        record_step(recorder, 2000.0 * number, number, modules)
    return recorder
