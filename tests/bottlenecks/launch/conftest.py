"""Recordings of a step of small operators on a device."""

import json

import pytest

STEP_US, OPERATOR_US, KERNEL_US = 6_000, 50, 5


@pytest.fixture
def recorded(tmp_path):
    """Returns a function that writes a trace of three steps, each with the given operators, which launch a kernel of
    5 us each; a condition waits for a copy to the host instead. An operator is a name, or a name with a sequence
    number."""

    def write(operators, **facts):
        events, number = [], 0
        row = {"ph": "X", "pid": 1, "tid": 1}
        for step in range(3):
            at = step * STEP_US
            mark = {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": at, "dur": STEP_US - 1}
            events.append(row | mark)
            for name in operators:
                number += 1
                name, sequence = name if isinstance(name, tuple) else (name, 0)
                args = {"Sequence number": sequence + 1_000 * step} if sequence else {}
                reads = name == "aten::is_nonzero"
                link = {"correlation": number, "device": 0, "stream": 7, "grid": [1, 1, 1]}
                call = "cudaMemcpyAsync" if reads else "cudaLaunchKernel"
                work = {"cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pageable)"} if reads else {"cat": "kernel"}
                events.append(row | {"cat": "cpu_op", "name": name, "ts": at, "dur": OPERATOR_US - 10, "args": args})
                events.append(row | {"cat": "cuda_runtime", "name": call, "ts": at + 20, "dur": 15, "args": link})
                device = {"name": "elementwise_kernel", **work, "pid": 0, "tid": 7, "ts": at + 26, "dur": KERNEL_US}
                events.append(row | device | {"args": link})
                at += OPERATOR_US
        path = tmp_path / "trace.json"
        devices = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}]
        path.write_text(
            json.dumps(
                {"deviceProperties": devices, "tb_bottleneck": {"schema": 1, "context": facts}, "traceEvents": events}
            )
        )
        return str(path)

    return write
