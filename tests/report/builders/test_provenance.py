"""A report does not claim a CPU run if the recording does not show where the work ran."""

import json

import pytest

from tb_bottleneck.diagnosis.trace import diagnose

A100 = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}


def row(category, name, ts, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": 50, "args": args}


OPERATORS = [row("cpu_op", "aten::linear", 100 * n) for n in range(20)]
LAUNCHES = [row("cuda_runtime", "cudaLaunchKernel", 100 * n, correlation=n + 1) for n in range(20)]
FOREIGN = [row("mtia_ccp_events", "x", 0)]


@pytest.mark.parametrize(
    ("events", "devices", "name", "kind"),
    [
        (OPERATORS + LAUNCHES, [A100], A100["name"], "cuda"),
        (OPERATORS + LAUNCHES, [], "", ""),
        (OPERATORS + FOREIGN, [{"id": 0, "name": "ARTEMIS"}], "ARTEMIS", "other"),
        ([], [A100], A100["name"], "cuda"),
        (OPERATORS, [], "CPU", "cpu"),
    ],
)
def test_the_device_is_the_one_that_is_described_or_none(tmp_path, events, devices, name, kind):
    path = tmp_path / "origin.pt.trace.json"
    path.write_text(json.dumps({"deviceProperties": devices, "traceEvents": events}))
    device = diagnose(str(path)).device
    assert (device.name, device.kind) == (name, kind)
