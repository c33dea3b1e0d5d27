"""Defects of a recording that are found before the diagnosis."""

import json
from pathlib import Path

import pytest
from helpers.draw import drawn

from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.quality.trace_defects import defects_of, fatal_defect, work_ran_on_cpu
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

DEVICES = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}]


def row(category, name, ts, dur=50, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}


OPERATORS = [row("cpu_op", "aten::linear", 100 * n) for n in range(20)]
MANY_ON_THE_CPU = [row("cpu_op", "aten::mkldnn_convolution", 100 * n) for n in range(200)]
LAUNCHES = [row("cuda_runtime", "cudaLaunchKernel", 100 * n, 5, correlation=n + 1) for n in range(20)]
KERNELS = [row("kernel", "ampere_sgemm_128x64_tn", 100 * n + 10, 80, correlation=n + 1, device=0) for n in range(20)]


def trace_of(tmp_path, events, **header):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"deviceProperties": DEVICES, **header, "traceEvents": events}))
    return load(str(path))


@pytest.mark.parametrize(
    ("events", "header", "code"),
    [
        ([], {}, "insufficient_data"),
        (OPERATORS + LAUNCHES + KERNELS[:3], {}, "insufficient_data"),
        (OPERATORS + LAUNCHES, {}, "kernels_not_recorded"),
        (OPERATORS + LAUNCHES[:2], {}, "kernels_not_recorded"),
        (OPERATORS + LAUNCHES[:1], {"deviceProperties": []}, "kernels_not_recorded"),
        (MANY_ON_THE_CPU + LAUNCHES[:1], {}, None),
        ([*OPERATORS, row("cuda_profiler_range", "range", 0)], {}, "kernels_not_recorded"),
        ([*OPERATORS, row("user_annotation", "nccl:all_reduce", 5)], {}, "kernels_not_recorded"),
        (OPERATORS, {"deviceProperties": [], "distributedInfo": {"backend": "nccl"}}, "kernels_not_recorded"),
        ([*OPERATORS, row("mtia_ccp_events", "x", 0)], {}, "unsupported_device"),
        (OPERATORS + KERNELS + [row("xpu_runtime", "urEnqueueKernelLaunch", 0)], {}, "unsupported_device"),
        ([*OPERATORS, row("cpu_op", "npu::npu_format_cast", 5)], {"deviceProperties": []}, "unsupported_device"),
        ([*OPERATORS, row("cpu_op", "aten::_mps_convolution", 5)], {"deviceProperties": []}, "unsupported_device"),
        ([*OPERATORS, row("cpu_op", "aten::cudnn_convolution", 5)], {"deviceProperties": []}, "kernels_not_recorded"),
        (OPERATORS, {}, "kernels_not_recorded"),
        ([*OPERATORS, row("cpu_op", "aten::mkldnn_convolution", 5)], {}, None),
        ([*OPERATORS, row("user_annotation", "gloo:all_reduce", 5)], {}, None),
        (OPERATORS + LAUNCHES + KERNELS, {}, None),
        (OPERATORS, {"deviceProperties": []}, None),
        ([row("gpu", "Frame", 0)], {"deviceProperties": []}, "other_program"),
        ([row("gpu", "Frame", 0)], {"deviceProperties": [], "with_stack": 1}, "insufficient_data"),
        ([row("gpu", "Frame", 0)], {}, "insufficient_data"),
    ],
)
def test_a_recording_that_cannot_be_judged_has_a_reason_code(tmp_path, events, header, code):
    trace = trace_of(tmp_path, events, **header)
    found = fatal_defect(trace, find_steps(trace))
    assert (found.code if found else None) == code
    assert found is None or found.fatal


INSIDE_OF_LINEAR = [row("cpu_op", "aten::empty", 100 * n + 10, 5) for n in range(20)]


def test_a_linear_layer_without_a_product_ran_on_an_accelerator_of_its_own(tmp_path):
    """Apple's MPS was judged as a CPU: its kernel for a linear layer is not recorded, and it has no operator below."""
    mps = trace_of(tmp_path, OPERATORS + INSIDE_OF_LINEAR, deviceProperties=[])
    assert fatal_defect(mps, find_steps(mps)).code == "unsupported_device"
    product = [row("cpu_op", "aten::addmm", 20, 5)]
    cpu = trace_of(tmp_path, OPERATORS + INSIDE_OF_LINEAR + product, deviceProperties=[])
    assert fatal_defect(cpu, find_steps(cpu)) is None


def memory(device_type, ts):
    facts = {"Device Type": device_type, "Device Id": -1, "Addr": 4096, "Bytes": 512, "Total Allocated": 512 * (ts + 1)}
    return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts, "args": facts}


@pytest.mark.parametrize(("device_type", "unused"), [(0, True), (1, False)])
def test_memory_of_the_cpu_alone_shows_that_the_gpu_was_not_used(tmp_path, device_type, unused):
    trace = trace_of(tmp_path, OPERATORS + [memory(device_type if n == 5 else 0, n) for n in range(20)])
    found = fatal_defect(trace, find_steps(trace))
    assert work_ran_on_cpu(trace) == unused
    assert (found.code if found else None) == (None if unused else "kernels_not_recorded")


def test_a_recurrent_layer_on_the_cpu_asks_for_cudnn_and_is_judged(tmp_path):
    trace = trace_of(tmp_path, [*OPERATORS, row("cpu_op", "aten::cudnn_is_acceptable", 5)], deviceProperties=[])
    assert fatal_defect(trace, find_steps(trace)) is None


def test_the_gpu_is_called_unused_only_if_its_calls_were_recorded(tmp_path):
    watched = [row("cuda_runtime", "cudaGetDeviceCount", 0)]
    assert work_ran_on_cpu(trace_of(tmp_path, OPERATORS + watched))
    assert not work_ran_on_cpu(trace_of(tmp_path, OPERATORS)), "no runtime call was recorded"
    assert not work_ran_on_cpu(trace_of(tmp_path, OPERATORS + watched, deviceProperties=[]))
    assert not work_ran_on_cpu(trace_of(tmp_path, OPERATORS + LAUNCHES + KERNELS))


def codes(trace):
    return {defect.code for defect in defects_of(trace, find_steps(trace))}


def test_launches_whose_kernels_were_lost_are_counted(tmp_path):
    assert "kernels_lost" in codes(trace_of(tmp_path, OPERATORS + LAUNCHES + KERNELS[:15]))
    assert "kernels_lost" in codes(trace_of(tmp_path, OPERATORS + LAUNCHES + KERNELS[:10] + KERNELS[15:]))
    assert "kernels_lost" not in codes(trace_of(tmp_path, OPERATORS + LAUNCHES + KERNELS))


def test_a_device_clock_that_is_ahead_is_a_defect(tmp_path):
    """As torch's own validator of traces checks it (torch/profiler/_trace_validator.py)."""
    ahead = [{**kernel, "ts": kernel["ts"] - 400} for kernel in KERNELS]
    drifting = [{**kernel, "ts": kernel["ts"] - 50 * number} for number, kernel in enumerate(KERNELS)]
    both = {"kernels_before_launch", "device_clock_moved"}
    assert both & codes(trace_of(tmp_path, OPERATORS + LAUNCHES + ahead)) == {"device_clock_moved"}
    assert both & codes(trace_of(tmp_path, OPERATORS + LAUNCHES + drifting)) == {"kernels_before_launch"}
    assert not both & codes(trace_of(tmp_path, OPERATORS + LAUNCHES + KERNELS))


def test_fills_may_leave_no_record_on_the_device(tmp_path):
    fills = [row("cuda_runtime", "cudaMemsetAsync", 100 * n + 60, 5, correlation=100 + n) for n in range(10)]
    assert "kernels_lost" not in codes(trace_of(tmp_path, OPERATORS + LAUNCHES + KERNELS + fills))


def test_one_step_says_nothing_about_how_steps_differ(tmp_path):
    raw = drawn("step aaaabbbb\ngpu .aa..aa.")
    one = [event for event in raw["traceEvents"] if event["name"] != "ProfilerStep#1"]
    assert "few_steps" not in codes(trace_of(tmp_path, raw["traceEvents"]))
    assert "few_steps" in codes(trace_of(tmp_path, one))


def test_many_short_operators_were_slowed_by_recording_them(tmp_path):
    crowd = [row("cpu_op", "aten::view", n, 1) for n in range(2000)]
    assert "profiler_inflated" in codes(trace_of(tmp_path, crowd + LAUNCHES + KERNELS))


def test_a_step_of_no_length_has_no_shares():
    """A recording whose only step took 0 us gave a window of 0 ns, and every share was a division by zero."""
    trace = load(str(Path(__file__).parents[1] / "traces" / "step_of_no_length.json"))
    assert fatal_defect(trace, find_steps(trace)).code == "insufficient_data"


FEW_LARGE = """
    op      #.................................
    launch  |||||.............................
    gpu     ..aaaaaaaabbbbbbbbccccccccddddddee
"""


@pytest.mark.parametrize(
    ("drawing", "unit_us", "code"),
    [
        (FEW_LARGE, 1000, None),
        (FEW_LARGE, 50, "insufficient_data"),  # kernels of 0.4 ms
        (FEW_LARGE.replace("bbbbbbbb", "bb......"), 1000, "insufficient_data"),  # the device is idle for a fifth
        (FEW_LARGE.replace("gpu  ", "small"), 1000, "insufficient_data"),  # kernels of one block
        ("op #.....\nlaunch |.....\ngpu ..aaaa", 1000, "insufficient_data"),  # one kernel
    ],
)
def test_few_kernels_are_enough_if_they_are_large_and_keep_the_device_busy(tmp_path, drawing, unit_us, code):
    trace = trace_of(tmp_path, drawn(drawing, unit_us)["traceEvents"])
    defect = fatal_defect(trace, find_steps(trace))
    assert (defect.code if defect else None) == code


def test_few_large_kernels_get_their_verdict(tmp_path):
    path = tmp_path / "large.pt.trace.json"
    path.write_text(json.dumps(drawn(FEW_LARGE, 5000)))
    report = diagnose(str(path))
    assert (report.verdict.regime, report.verdict.confidence) == ("compute", "low")


def test_a_file_of_the_older_profiler_is_named(tmp_path):
    """It is a list without categories, in which processes have names."""
    operators = [
        {"name": "aten::mm", "ph": "X", "ts": 10 * n, "dur": 8, "tid": 1, "pid": "CPU functions", "args": {}}
        for n in range(300)
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(operators))
    report = diagnose(str(path))
    (reason,) = report.health.reasons
    assert (report.health.status, reason.code) == ("incomplete", "autograd_profiler")
    assert "torch.autograd.profiler" in reason.detail
    assert "torch.profiler.profile" in reason.fix
    assert report.device.kind == "", "no device is claimed"
