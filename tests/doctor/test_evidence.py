"""Figures of the monitor and of its trace are paired with the training's own ones of the same steps."""

import json
import pickle
from pathlib import Path

import pytest
from comparison.drawn_runs import repeated
from helpers.draw import drawn_trace
from helpers.snapshots import random_snapshot
from helpers.telemetry_rows import packet, recording_of

from tb_bottleneck.diagnosis.trace import diagnose_loaded
from tb_bottleneck.doctor import checks
from tb_bottleneck.doctor.evidence import Evidence, read_evidence
from tb_bottleneck.doctor.examination import training_rows
from tb_bottleneck.doctor.results import ABSENT, FAILS, UNKNOWN, WORKS
from tb_bottleneck.doctor.training import RESULT

ENDS = [100e6, 110e6, 130e6, 160e6]
DRAWING = repeated(6, h2d=".#........", gpu="..#######.", op="##........")
"""Steps of 1 ms: a copy of 1 MiB, then a kernel; 0.8 ms on the device."""


def evidence(**measured) -> Evidence:
    columns = {"loader_wait": [5, 6, 7, 8], "profiled": [0, 0, 1, 1], "device_busy": [9, 9, 0.8, 0.8]}
    written = packet([50, 10, 20, 30], **columns, memory_allocated=[float("nan"), 7, float("nan"), 7])
    return Evidence(measured, recording_of(written).telemetry, drawn_trace(DRAWING))


def test_step_times_are_paired_by_number_without_the_first() -> None:
    assert evidence(ends=ENDS).by_step("wall", "ends") == ([10e6, 20e6, 30e6], [10e6, 20e6, 30e6])
    late = [end + 5e6 * number for number, end in enumerate(ENDS)]
    assert checks.STEP_TIMES.row(*evidence(ends=late).by_step("wall", "ends")).result == FAILS


def test_waits_and_bytes_are_paired_where_both_are_known() -> None:
    assert evidence(waits=[1, 2, 3]).by_step("loader_wait", "waits") == ([6e6, 7e6], [2, 3])
    assert evidence(allocated=[1, 7e6, 3, 8e6]).by_step("memory_allocated", "allocated") == ([7e6, 7e6], [7e6, 8e6])


def test_device_time_is_that_of_recorded_steps() -> None:
    events, kernels = evidence().device_times()
    assert events == [0.8e6]
    assert kernels == pytest.approx([0.8e6])
    assert checks.DEVICE_TIME.row(events, kernels).result == WORKS


@pytest.mark.parametrize(("known", "result"), [(1 << 20, WORKS), (1 << 21, FAILS)])
def test_copies_are_compared_with_known_bytes(known: int, result: str) -> None:
    assert checks.COPIES.row(*evidence(batch_bytes=known).copied()).result == result


@pytest.mark.parametrize(("clock_ms", "result"), [(0.2, WORKS), (1.2, FAILS)])
def test_products_on_the_cpu_are_compared_with_a_clock(clock_ms: float, result: str) -> None:
    trace = drawn_trace(repeated(6, op="##........"), deviceProperties=[], baseTimeNanoseconds=10**18)
    names = tuple(name.replace("aten::linear", "aten::bmm") for name in trace.names)
    object.__setattr__(trace, "names", names)
    own = [(10**18 + 1_000_000 * step + 10_000, clock_ms * 1e6) for step in range(6)]
    trace_times, clock = Evidence({"products": own}, trace=trace).products()
    assert trace_times == pytest.approx([0.2e6] * len(trace_times))
    assert len(trace_times) >= 5
    assert checks.CPU_PRODUCTS.row(trace_times, clock).result == result


def test_the_counts_of_a_recording_without_stacks() -> None:
    trace = drawn_trace(DRAWING)
    whole = Evidence({"on_gpu": True}, evidence().telemetry, trace, diagnose_loaded(trace, "drawn")[0])
    counted = whole.recorded_trace()
    assert counted is not None
    assert (counted.operators, counted.frames, counted.lines) == (6, 0, 0)
    assert (counted.launches, counted.kernels) == (6, 6)
    assert "stacks" in checks.capture(counted).measured


@pytest.mark.parametrize(("factor", "result"), [(1.0, WORKS), (2.0, FAILS)])
def test_the_peak_of_a_snapshot_is_that_of_torch(tmp_path: Path, factor: float, result: str) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "rank0_1.1.trace.pickle").write_bytes(pickle.dumps(random_snapshot(300), protocol=4))
    (peak,), _ = read_evidence(tmp_path).snapshot_peaks()
    assert peak > 1e9
    (tmp_path / RESULT).write_text(json.dumps({"on_gpu": True, "allocated_peak": factor * peak}))
    found = read_evidence(tmp_path)
    assert checks.SNAPSHOT.row(*found.snapshot_peaks()).result == result
    assert [row.result for row in training_rows(found, "") if row.check == "Memory snapshot"] == [result]


def test_a_training_that_left_nothing_gives_one_failure(tmp_path: Path) -> None:
    rows = list(training_rows(read_evidence(tmp_path), "ended with signal 11"))
    assert [row.measured for row in rows if row.result == FAILS] == ["the training process ended with signal 11"]
    assert {row.result for row in rows[1:]} == {UNKNOWN}


def test_damaged_files_are_no_evidence(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / RESULT).write_text("{")
    (tmp_path / "runs" / "a.pt.trace.json.gz").write_bytes(b"\x1f\x8b damaged")
    (tmp_path / "runs" / "events.out.tfevents.1").write_bytes(b"damaged")
    rows = {row.check: row for row in training_rows(read_evidence(tmp_path), "")}
    assert rows["Step times"].result == rows["Capture"].result == FAILS


def test_a_gpu_training_has_the_rows_of_the_gpu() -> None:
    steps = {"ends": ENDS, "waits": [5e6, 6e6, 7e6, 8e6], "allocated": [0, 7e6, 0, 7e6], "batch_bytes": 1 << 20}
    rows = {row.check: row for row in training_rows(evidence(on_gpu=True, **steps), "")}
    good = ("Training", "Step times", "Waits for data", "Device time", "Copies", "Allocator")
    assert {rows[check].result for check in good} == {WORKS}
    assert rows["GPU counters"].result == rows["Memory snapshot"].result == FAILS
    assert {row.result for row in training_rows(evidence(on_gpu=False, **steps), "") if row.check == "Copies"} == {
        ABSENT
    }
