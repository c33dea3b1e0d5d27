"""Damaged events and steps are left out and named; the rest is judged as in the undamaged recording."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tb_bottleneck.base.regime import DEVICE_REGIMES
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.schema import bottleneck_pb2 as pb

STEPS, PRODUCTS, STEP_US, KERNEL_US = 6, 20, 5_000, 230
Event = dict[str, Any]


def events() -> list[Event]:
    """Returns six steps of 20 products in fp32, each with its operator, launch and kernel."""
    found: list[Event] = []
    row = {"ph": "X", "pid": 1, "tid": 1}
    shapes = {"Input Dims": [[1024, 1024], [1024, 1024]], "Input type": ["float", "float"]}
    for step in range(STEPS):
        begin = step * STEP_US
        found.append(row | {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": begin, "dur": STEP_US - 1})
        for number in range(PRODUCTS):
            at, link = begin + 240 * number, {"correlation": step * PRODUCTS + number + 1, "device": 0, "stream": 7}
            found.append(row | {"cat": "cpu_op", "name": "aten::mm", "ts": at, "dur": 20, "args": shapes})
            launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 5, "dur": 5, "args": link}
            kernel = {"cat": "kernel", "name": "ampere_sgemm_128x64_nn", "ts": at + 12, "dur": KERNEL_US}
            found += [row | launch, row | kernel | {"pid": 0, "tid": 7, "args": link | {"grid": [512, 1, 1]}}]
    return found


def kernels(of: list[Event]) -> list[Event]:
    return [each for each in of if each["cat"] == "kernel"]


def first_kernels_missing(of: list[Event]) -> None:
    for each in kernels(of)[: 2 * PRODUCTS - 5]:
        of.remove(each)


def an_hour_passes(of: list[Event]) -> None:
    for each in of:
        if each["ts"] >= 1.5 * STEP_US:
            each["ts"] += 3_600e6


def an_hour_passes_in_the_last_step(of: list[Event]) -> None:
    for each in of:
        if each["ts"] >= (STEPS - 0.5) * STEP_US:
            each["ts"] += 3_600e6


def a_mark_is_missing(of: list[Event]) -> None:
    of.remove(next(each for each in of if each["name"] == "ProfilerStep#2"))


def the_first_mark_is_missing(of: list[Event]) -> None:
    of.remove(next(each for each in of if each["name"] == "ProfilerStep#0"))


def kernels_overlap(of: list[Event]) -> None:
    for each in kernels(of)[2 * PRODUCTS : 3 * PRODUCTS : 3]:
        each["dur"] = 1.5 * KERNEL_US


def kernels_of_negative_length(of: list[Event]) -> None:
    for each in kernels(of)[2 * PRODUCTS : 3 * PRODUCTS : 3]:
        each["dur"] = -each["ts"]


def kernels_twice(of: list[Event]) -> None:
    of += kernels(of)


def an_endless_kernel(of: list[Event]) -> None:
    of.append(kernels(of)[30] | {"dur": 80_000e6})


def the_clock_of_the_device_is_early(of: list[Event]) -> None:
    for each in kernels(of):
        each["ts"] -= 1_700


def kernels_without_a_time(of: list[Event]) -> None:
    for each in of:
        each["ts"] += 10_000
    for each in kernels(of)[10:30]:
        each["ts"] = each["dur"] = 0


def report_of(folder: Path, change: Callable[[list[Event]], None] | None = None) -> pb.Report:
    found = events()
    if change is not None:
        change(found)
    path = folder / "trace.json"
    device = {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "numSms": 108}
    path.write_text(json.dumps({"deviceProperties": [device], "traceEvents": found}))
    return diagnose(str(path))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (first_kernels_missing, "damaged_steps"),
        (an_hour_passes, "damaged_steps"),
        (an_hour_passes_in_the_last_step, "damaged_steps"),
        (a_mark_is_missing, "damaged_steps"),
        (the_first_mark_is_missing, "damaged_steps"),
        (kernels_overlap, "damaged_steps"),
        (kernels_of_negative_length, "damaged_steps"),
        (kernels_twice, "events_twice"),
        (an_endless_kernel, "events_lost"),
        (the_clock_of_the_device_is_early, "device_clock_moved"),
    ],
)
def test_the_rest_is_judged_as_if_nothing_were_damaged(
    tmp_path: Path, change: Callable[[list[Event]], None], code: str
) -> None:
    whole, damaged = report_of(tmp_path), report_of(tmp_path, change)
    assert code in [reason.code for reason in damaged.health.reasons]
    assert code not in [reason.code for reason in whole.health.reasons]
    assert damaged.verdict.regime == whole.verdict.regime == "compute"
    assert damaged.verdict.share == pytest.approx(whole.verdict.share, rel=0.02)
    assert damaged.findings[0].speedup.expected == pytest.approx(whole.findings[0].speedup.expected, rel=0.05)
    assert damaged.window.steps >= 2


def test_steps_of_which_each_lacks_kernels_are_all_kept(tmp_path: Path) -> None:
    def every_fourth(of: list[Event]) -> None:
        for each in kernels(of)[::4]:
            of.remove(each)

    report = report_of(tmp_path, every_fourth)
    codes = [reason.code for reason in report.health.reasons]
    assert "kernels_lost" in codes
    assert "damaged_steps" not in codes
    assert report.window.steps == STEPS - 1


def test_kernels_without_a_time_do_not_count_and_leave_no_gain(tmp_path: Path) -> None:
    report = report_of(tmp_path, kernels_without_a_time)
    codes = [reason.code for reason in report.health.reasons]
    assert "events_lost" in codes
    assert "kernels_before_launch" not in codes
    assert report.window.steps < STEPS


def test_clocks_that_drift_are_not_aligned(tmp_path: Path) -> None:
    def drifting(of: list[Event]) -> None:
        for number, each in enumerate(kernels(of)):
            each["ts"] -= 500 + 10 * number

    report = report_of(tmp_path, drifting)
    assert "kernels_before_launch" in [reason.code for reason in report.health.reasons]
    idle = [finding for finding in report.findings if finding.regime not in DEVICE_REGIMES]
    assert all(finding.speedup.basis == "none" for finding in idle)
    assert report.findings[0].regime == "compute"


def test_an_empty_step_beside_kernels_without_a_link_to_their_launch_is_not_the_only_one(tmp_path: Path) -> None:
    def without_links(of: list[Event]) -> None:
        for each in kernels(of):
            each["args"] = {**each["args"], "correlation": 0}
        for each in [each for each in of if each["ts"] >= 5 * STEP_US and each["cat"] == "cuda_runtime"]:
            of.remove(each)

    report = report_of(tmp_path, without_links)
    assert "damaged_steps" not in [reason.code for reason in report.health.reasons]
    assert report.window.steps >= STEPS - 2


def test_nothing_is_predicted_from_one_undamaged_step(tmp_path: Path) -> None:
    def two_steps_left(of: list[Event]) -> None:
        of[:] = [each for each in of if each["ts"] < 2 * STEP_US]
        for each in kernels(of)[:3]:
            of.remove(each)

    report = report_of(tmp_path, two_steps_left)
    assert report.window.steps == 1
    assert {finding.speedup.basis for finding in report.findings} == {"none"}
    assert "fewer than two undamaged steps" in report.replay.because


def test_the_work_of_two_processes_in_one_file_is_not_told_apart(tmp_path: Path) -> None:
    def of_another_process(of: list[Event]) -> None:
        of += [each | {"pid": 2} for each in of if each["cat"] != "kernel"]

    report = report_of(tmp_path, of_another_process)
    assert "several_processes" in [reason.code for reason in report.health.reasons]
    assert report.verdict.confidence == "low"
    assert {finding.speedup.basis for finding in report.findings} == {"none"}


def test_a_moved_clock_leaves_no_gain_of_short_idle_times(tmp_path: Path) -> None:
    """Twenty gaps in 2.5 ms: an error of 20 us each is a sixth of the step."""

    def short_kernels_early(of: list[Event]) -> None:
        for each in of:
            each["ts"] /= 2
            each["dur"] = 3 if each["cat"] == "kernel" else each["dur"] / 2
        the_clock_of_the_device_is_early(of)

    report = report_of(tmp_path, short_kernels_early)
    assert "device_clock_moved" in [reason.code for reason in report.health.reasons]
    assert report.verdict.confidence == "low"
    assert {finding.speedup.basis for finding in report.findings} == {"none"}
