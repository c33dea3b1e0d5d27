"""Launches that wait for their kernels are the cause, and the gain is that of a host that goes ahead."""

import json

import pytest

from tb_bottleneck.diagnosis.trace import diagnose

OPERATORS, HOST_US, KERNEL_US = 40, 50, 100


def recorded(tmp_path, blocking):
    """Writes three steps of operators that take 50 us on the host and 100 us on the device."""
    events, number, at, free = [], 0, 0, 0
    row = {"ph": "X", "pid": 1, "tid": 1}
    for step in range(3):
        begin = at
        for _ in range(OPERATORS):
            number += 1
            link = {"correlation": number, "device": 0, "stream": 7, "grid": [512, 1, 1]}
            launch = at + HOST_US - 10
            start = max(launch + 6, free)
            free = start + KERNEL_US
            call = free - launch + 2 if blocking else 8
            events.append(row | {"cat": "cpu_op", "name": "aten::mm", "ts": at, "dur": launch - at + call})
            events.append(
                row | {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": launch, "dur": call, "args": link}
            )
            kernel = {
                "cat": "kernel",
                "name": "ampere_bf16_s16816gemm_bf16_128x128_tn",
                "pid": 0,
                "tid": 7,
                "ts": start,
                "dur": KERNEL_US,
            }
            events.append(row | kernel | {"args": link})
            at = launch + call + 2
        mark = {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": begin, "dur": at - begin - 1}
        events.append(row | mark)
    path = tmp_path / "t.pt.trace.json"
    devices = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}]
    path.write_text(json.dumps({"deviceProperties": devices, "traceEvents": events}))
    return diagnose(str(path))


def test_the_host_could_go_ahead(tmp_path):
    report = recorded(tmp_path, blocking=True)
    found = report.findings[0]
    assert found.cause == "blocking_launches"
    assert found.speedup.expected == pytest.approx((HOST_US + KERNEL_US) / KERNEL_US, rel=0.1)
    assert "CUDA_LAUNCH_BLOCKING" in found.fix.code


def test_usual_launches_do_not_wait(tmp_path):
    assert "blocking_launches" not in [finding.cause for finding in recorded(tmp_path, blocking=False).findings]
