"""Operators, kernels, communications and the critical path of a recorded model, and what operations waited for."""

from pathlib import Path

import pytest
from drilldown.tree.recorded_model import GEMM, MAIN, Recorder, recorded_steps

from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.operations.critical_path import critical_path
from tb_bottleneck.drilldown.operations.dependencies import MAX_FOUND, add_found, dependencies_of
from tb_bottleneck.drilldown.operations.details import details_of
from tb_bottleneck.drilldown.tables import tables_of
from tb_bottleneck.schema import evidence_pb2 as pb

STREAM = "device "


@pytest.fixture
def model(tmp_path: Path) -> InspectedTrace:
    return recorded_steps().inspected(tmp_path)


def operator(inspected: InspectedTrace, name: str) -> pb.OperatorRow:
    (row,) = [row for row in tables_of(inspected).operators if row.name == name]
    return row


def track(inspected: InspectedTrace) -> str:
    return next(lane.track for lane in inspected.lanes.rows if lane.group == "device")


def test_operators_have_times_with_and_without_what_they_call(model: InspectedTrace) -> None:
    linear, addmm = operator(model, "aten::linear"), operator(model, "aten::addmm")
    assert (linear.device_ns, linear.device_total_ns) == (0, 4 * 100_000)
    assert (addmm.device_ns, addmm.device_total_ns) == (4 * 100_000, 4 * 100_000)
    assert (linear.host_ns, linear.host_total_ns) == (4 * 18_000, 4 * 98_000)
    assert (linear.min_ns, linear.mean_ns, linear.max_ns, linear.kernels) == (100_000, 100_000, 100_000, 1)


def test_contractions_can_use_tensor_cores(model: InspectedTrace) -> None:
    addmm, loss = operator(model, "aten::addmm"), operator(model, "aten::mse_loss")
    assert (addmm.tensor_eligible, addmm.tensor_share) == (True, 1)
    assert not loss.tensor_eligible


def test_an_operator_that_calls_itself_counts_once(tmp_path: Path) -> None:
    recorder = recorded_steps()
    for begin in (2000, 4000):
        recorder.row("cpu_op", "aten::to", begin + 1800, begin + 1900)
        recorder.row("cpu_op", "aten::to", begin + 1810, begin + 1890)
    row = operator(recorder.inspected(tmp_path), "aten::to")
    assert (row.calls, row.host_ns, row.host_total_ns) == (4, 200_000, 200_000)


def test_kernels_have_extremes_blocks_and_occupancy(tmp_path: Path) -> None:
    recorder = recorded_steps()
    for event in recorder.events:
        if event["name"] == GEMM:
            event["args"]["est. achieved occupancy %"] = 25 if event["dur"] == 100 else 50
    (row,) = [row for row in tables_of(recorder.inspected(tmp_path)).kernels if row.name == GEMM]
    assert (row.min_ns, row.mean_ns, row.max_ns) == (100_000, 150_000, 200_000)
    assert row.blocks_per_sm == pytest.approx(1024 / 108)
    assert row.occupancy == pytest.approx((25 * 100 + 50 * 200) / 300 / 100)


def test_what_is_not_recorded_is_absent(model: InspectedTrace) -> None:
    assert not any(row.HasField("occupancy") for row in tables_of(model).kernels)


def record_all_reduce(recorder: Recorder, begin: float, elements: int) -> None:
    args = {
        "Collective name": "allreduce", "dtype": "Float", "In msg nelems": elements, "Out msg nelems": elements,
        "Group size": 4, "Process Group Name": "0", "Process Group Description": "default_pg",
    }  # fmt: skip
    recorder.row("cpu_op", "record_param_comms", begin, begin + 30, MAIN, **args)
    recorder.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", begin + 10, begin + 20, begin + 120)
    recorder.events[-1]["args"] |= args


def test_communications_have_their_bandwidths(tmp_path: Path) -> None:
    recorder = recorded_steps()
    for begin in (2000, 4000):
        record_all_reduce(recorder, begin + 1720, 1_000_000)
    (row,) = tables_of(recorder.inspected(tmp_path)).communications
    assert (row.operation, row.group, row.ranks, row.calls, row.bytes) == ("all_reduce", "default_pg", 4, 2, 4e6)
    assert row.mean_ns == 100_000
    assert row.algorithm_bytes_per_s == pytest.approx(4e6 / 100e-6)
    assert row.bus_bytes_per_s == pytest.approx(4e6 / 100e-6 * 1.5), "2 (n - 1) / n with 4 ranks"


def test_the_critical_path_fills_the_window(tmp_path: Path) -> None:
    recorder = recorded_steps()
    for begin in (0, 2000, 4000):
        recorder.row("cuda_runtime", "cudaStreamSynchronize", begin + 900, begin + 1003)
    model = recorder.inspected(tmp_path)
    recording = model.recording
    assert recording is not None
    path = critical_path(recording)
    assert int((path.end - path.begin).sum()) == recording.steps.end - recording.steps.begin
    assert (path.begin[1:] == path.end[:-1]).all()
    rows = tables_of(model).critical_path
    assert sum(row.share for row in rows) == pytest.approx(1)
    (gemm,) = [row for row in rows if row.name == GEMM]
    assert gemm.total_ns == pytest.approx(2 * 200_000, abs=20_000), "the host waits only for the last one of a step"


def test_work_that_nothing_waits_for_is_not_critical(model: InspectedTrace) -> None:
    assert all(row.name == "" for row in tables_of(model).critical_path)


def test_the_calls_of_an_operator_are_grouped(model: InspectedTrace) -> None:
    details = details_of(model, "aten::addmm", None)
    assert [(row.name, row.calls) for row in details.callers] == [("aten::linear", 4)]
    assert [(row.name, row.calls, row.device_ns) for row in details.kernels] == [(GEMM, 4, 400_000)]
    assert {row.name for row in details.modules} == {"Linear_0", "Linear_1"}
    assert {row.name for row in details.lines} == {"model.py(10): forward", "model.py(11): forward"}


def test_the_calls_of_a_kernel_are_grouped(model: InspectedTrace) -> None:
    details = details_of(model, None, GEMM)
    assert {(row.name, row.calls, row.mean_ns) for row in details.callers} == {
        ("aten::addmm", 4, 100_000),
        ("aten::mm", 4, 200_000),
    }


def test_inputs_of_equal_shapes_are_one_group(tmp_path: Path) -> None:
    recorder = recorded_steps()
    for event in recorder.events:
        if event["name"] == "aten::addmm":
            size = 8 if event["ts"] % 2000 < 100 else 16
            event["args"] |= {"Input Dims": [[size], [4, size]], "Input type": ["float", "float"]}
    shapes = details_of(recorder.inspected(tmp_path), "aten::addmm", None).shapes
    assert {(row.name, row.calls) for row in shapes} == {
        ("[8] float, [4, 8] float", 2),
        ("[16] float, [4, 16] float", 2),
    }


def test_a_name_that_did_not_run_is_explained(model: InspectedTrace) -> None:
    with pytest.raises(NotFound, match="nothing called 'aten::none'"):
        details_of(model, "aten::none", None)


def test_rows_are_found_by_name(model: InspectedTrace) -> None:
    answer = pb.FindAnswer()
    add_found(model, "FOREACH", answer)
    assert (answer.count, answer.total_ns) == (3, 3 * 50_000)
    assert [(row.name, row.begin_ns) for row in answer.rows] == [
        ("aten::_foreach_add_", begin) for begin in (1_150_000, 3_150_000, 5_150_000)
    ]
    assert answer.rows[0].track.startswith("host")


def test_the_number_of_found_rows_is_bounded(tmp_path: Path) -> None:
    recorder = recorded_steps()
    for number in range(MAX_FOUND + 5):
        recorder.row("cpu_op", "aten::tiny", 1800 + number / 100, 1800 + number / 100 + 0.005)
    answer = pb.FindAnswer()
    add_found(recorder.inspected(tmp_path), "tiny", answer)
    assert (answer.count, len(answer.rows)) == (MAX_FOUND + 5, MAX_FOUND)


def test_an_operation_has_its_launch_and_its_places(model: InspectedTrace) -> None:
    found = dependencies_of(model, 2_550_000, track(model))
    assert (found.name, found.launch.name) == (GEMM, "cudaLaunchKernel")
    assert list(found.operators)[-2:] == ["AddmmBackward0", "aten::mm"]
    assert list(found.modules) == ["Net_0", "Linear_1"]
    assert list(found.lines)[-1] == "model.py(11): forward"


def test_an_operation_waits_for_the_last_thing_that_it_needs(tmp_path: Path) -> None:
    recorder = recorded_steps()
    recorder.kernel("void queued()", 2525, 2752, 2760)
    inspected = recorder.inspected(tmp_path)
    queued = dependencies_of(inspected, 2_752_000, track(inspected))
    assert (queued.waited_for, queued.awaited.name, queued.waited_ns) == ("stream", GEMM, 2_000)
    assert [row.name for row in dependencies_of(inspected, 2_550_000, track(inspected)).followers] == ["void queued()"]
    assert dependencies_of(inspected, 2_050_000, track(inspected)).waited_for == "launch"


@pytest.mark.parametrize("begin", [1.0, 2_551_000.0])
def test_a_time_without_an_operation_is_explained(model: InspectedTrace, begin: float) -> None:
    with pytest.raises(NotFound, match="no operation of the device begins"):
        dependencies_of(model, begin, track(model))
