"""Conditions on values of the device are checks, together with the operators that compute them."""

import json

import pytest

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.bottlenecks.launch.device_checks import checks_per_step, idle_in_checks
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

LAYER = ["aten::linear", "aten::gelu", "aten::add"]
CHECK = ["aten::isnan", "aten::any", "aten::is_nonzero"]
STEP_US, OPERATOR_US, KERNEL_US = 4_000, 50, 5


@pytest.fixture
def recorded(tmp_path):
    """Returns a function that writes a trace of three steps, each with the given operators, which launch a kernel of
    5 us each; a condition waits for a copy to the host instead."""

    def write(operators):
        events, number = [], 0
        row = {"ph": "X", "pid": 1, "tid": 1}
        for step in range(3):
            at = step * STEP_US
            mark = {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": at, "dur": STEP_US - 1}
            events.append(row | mark)
            for name in operators:
                number += 1
                reads = name == "aten::is_nonzero"
                link = {"correlation": number, "device": 0, "stream": 7, "grid": [1, 1, 1]}
                call = "cudaMemcpyAsync" if reads else "cudaLaunchKernel"
                work = {"cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pageable)"} if reads else {"cat": "kernel"}
                events.append(row | {"cat": "cpu_op", "name": name, "ts": at, "dur": OPERATOR_US - 10})
                events.append(row | {"cat": "cuda_runtime", "name": call, "ts": at + 20, "dur": 15, "args": link})
                device = {"name": "elementwise_kernel", **work, "pid": 0, "tid": 7, "ts": at + 26, "dur": KERNEL_US}
                events.append(row | device | {"args": link})
                at += OPERATOR_US
        path = tmp_path / "trace.json"
        devices = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}]
        path.write_text(json.dumps({"deviceProperties": devices, "traceEvents": events}))
        return str(path)

    return write


def test_a_check_has_the_operators_that_compute_its_condition(recorded):
    trace = load(recorded([*LAYER, *CHECK] * 8))
    recording = Recording(trace, find_steps(trace))
    assert checks_per_step(recording).value == 8
    checked = 8 * len(CHECK) * (OPERATOR_US - KERNEL_US) - 8 * 10
    assert idle_in_checks(recording).value == pytest.approx(checked / STEP_US, rel=0.05)


@pytest.mark.parametrize(
    ("operators", "found"),
    [
        ([*LAYER, *CHECK] * 8, True),
        ([*LAYER * 20, *CHECK], False),
        ([*LAYER, "aten::item"] * 8, False),
        (LAYER * 20, False),
    ],
    ids=["in each layer", "once in a step", "values that are read", "no check"],
)
def test_several_checks_in_a_step_are_a_cause(recorded, operators, found):
    report = diagnose(recorded(operators))
    causes = {each.cause: each for each in report.findings}
    assert ("device_checks" in causes) == found
    if found:
        assert causes["device_checks"].speedup.expected > 1.2
        assert "torch._assert_async" in causes["device_checks"].fix.code
