"""The tree of a recorded model: what belongs to its modules, lines, operators and ranges."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from drilldown.tree.recorded_model import AUTOGRAD, GEMM, MAIN, Recorder, recorded_steps
from helpers.draw import drawn

from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.tree.paths import BY, FLAT
from tb_bottleneck.drilldown.tree.selection import Selection, recording_of, selected_tree
from tb_bottleneck.drilldown.tree.tree import Tree
from tb_bottleneck.plugin.workers.questions import TREES
from tb_bottleneck.trace.trace import load

TRACES = Path(os.environ.get("TB_BOTTLENECK_TRACES", "")) if os.environ.get("TB_BOTTLENECK_TRACES") else None


def node(tree: Tree, *path: str) -> int:
    """Returns the node with this path."""
    at = 0
    for name in path:
        (at,) = [
            row
            for row, (parent, own) in enumerate(zip(tree.parent, tree.name, strict=True))
            if (parent, own) == (at, name)
        ]
    return at


def value(tree: Tree, column: str, *path: str) -> float:
    """Returns a column of a node, in us."""
    return float(tree.columns[column][node(tree, *path)]) / 1000


def assert_is_the_account(inspected: InspectedTrace, tree: Tree, selection: Selection) -> None:
    account = recording_of(inspected, selection).account
    assert np.allclose(tree.regimes[:, 0], [account.ns[regime] for regime in REGIMES])
    assert all((tree.own(row) > -1).all() for row in tree.regimes)
    assert all((tree.own(column) >= -1).all() for column in tree.columns.values())


@pytest.fixture
def model(tmp_path: Path) -> InspectedTrace:
    return recorded_steps().inspected(tmp_path)


@pytest.mark.parametrize("by", BY)
def test_the_time_of_all_nodes_is_the_account(model: InspectedTrace, by: str) -> None:
    for selection in (Selection(by), Selection(by, first_step=1, last_step=1), Selection(by, merged=True)):
        assert_is_the_account(model, selected_tree(model, selection), selection)


PRODUCT = """
    step    aaaaaaaaaabbbbbbbbbb
    op      ##........##........
    launch  |.........|.........
    gpu     ..####......####....
"""
"""In each of two steps of a millisecond one product, of 400 us."""


def test_kernels_and_operators_have_their_share_of_the_roofline(tmp_path: Path) -> None:
    rows, inner, columns = 4096, 4096, 1024
    trace = drawn(PRODUCT)
    for event in trace["traceEvents"]:
        if event["cat"] == "cpu_op":
            args = {"Input Dims": [[rows, inner], [inner, columns]], "Input type": ["c10::BFloat16"] * 2}
            event["name"], event["args"] = "aten::mm", args
        elif event["cat"] == "kernel":
            event["name"] = "cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_32x3_nn_align8"
    path = tmp_path / "drawn.pt.trace.json"
    path.write_text(json.dumps(trace))
    inspected = InspectedTrace(load(str(path)))
    flops, moved = 2 * rows * inner * columns, 2 * (rows * inner + inner * columns + rows * columns)
    for by, kind in (("kernel", "kernel"), ("operator", "operator")):
        tree = selected_tree(inspected, Selection(by))
        at = tree.kind.index(kind)
        assert tree.columns["bounded"][at] == tree.columns["device"][at] == 800_000
        # 312 TFLOP/s in the data sheet of an A100, of which 87 % can be reached
        reached = tree.columns["ideal"][at] / tree.columns["bounded"][at]
        assert reached == pytest.approx(flops / 400e-6 / (312e12 * 0.87), rel=0.01)
    assert tree.columns["flops"][at] / tree.columns["bytes"][at] == pytest.approx(flops / moved, rel=0.03)


def test_collectives_are_a_list_by_process_group_and_size(tmp_path: Path) -> None:
    recorder = recorded_steps()
    args = {
        "Collective name": "allreduce", "dtype": "Float", "In msg nelems": 1_000_000, "Out msg nelems": 1_000_000,
        "Group size": 4, "Process Group Name": "0", "Process Group Description": "default_pg",
    }  # fmt: skip
    for begin in (3720, 5720):
        recorder.row("cpu_op", "record_param_comms", begin, begin + 30, MAIN, **args)
        recorder.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", begin + 10, begin + 20, begin + 120)
        recorder.events[-1]["args"] |= args
    tree = selected_tree(recorder.inspected(tmp_path), Selection("communication"))
    at = node(tree, "allreduce, group default_pg, 4.0 MB")
    assert (tree.kind[at], tree.calls[at], tree.columns["device"][at]) == ("communication", 2, 200_000)
    assert tree.columns["bytes"][at] == 8_000_000


def test_the_server_knows_the_groupings() -> None:
    assert TREES == BY


def test_the_backward_pass_belongs_to_the_modules_of_the_forward_pass(model: InspectedTrace) -> None:
    tree = selected_tree(model, Selection("module", first_step=1, last_step=1))
    layer = ("Net_0", "Linear_1")
    assert value(tree, "device", *layer) == 300
    assert value(tree, "device", *layer, "aten::addmm", GEMM) == 100
    assert value(tree, "device", *layer, "aten::mm", GEMM) == 200
    assert value(tree, "backward", *layer) >= 200
    assert value(tree, "device", "outside of modules", "aten::mse_loss") == 100
    assert value(tree, "device", "Optimizer.step#SGD.step") == 300


def test_the_line_is_the_programs_own(model: InspectedTrace) -> None:
    tree = selected_tree(model, Selection("line", first_step=1, last_step=1))
    assert value(tree, "device", "train.py(30): step", "model.py(10): forward") == 300
    assert not any("torch/autograd" in name for name in tree.name)


def test_a_node_of_autograd_is_below_the_operator_of_the_forward_pass(model: InspectedTrace) -> None:
    tree = selected_tree(model, Selection("operator", first_step=1, last_step=1))
    assert value(tree, "device", "aten::linear", "aten::addmm", "AddmmBackward0", "aten::mm") == 400
    assert tree.calls[node(tree, "aten::linear", "aten::addmm", "AddmmBackward0")] == 2


def test_layers_can_be_one_row(model: InspectedTrace) -> None:
    tree = selected_tree(model, Selection("module", first_step=1, last_step=1, merged=True))
    assert value(tree, "device", "Net_*", "Linear_*") == 600
    assert tree.calls[node(tree, "Net_*", "Linear_*", "aten::linear")] == 2


def test_modules_that_are_marked_have_their_own_names(tmp_path: Path) -> None:
    tree = selected_tree(recorded_steps(modules="user_annotation").inspected(tmp_path), Selection("module"))
    assert value(tree, "device", "Net_0", "Linear_0") > 0


def test_work_whose_launch_is_not_recorded_is_unmapped(tmp_path: Path) -> None:
    recorder = recorded_steps()
    recorder.lost_kernel("void lost_kernel(int)", 3700, 3800)
    inspected = recorder.inspected(tmp_path)
    tree = selected_tree(inspected, Selection("module", first_step=1, last_step=1))
    assert value(tree, "device", "unmapped", "lost_kernel") == 100
    assert_is_the_account(inspected, tree, Selection("module", first_step=1, last_step=1))


def test_a_range_around_the_backward_pass_keeps_it(tmp_path: Path) -> None:
    recorder = recorded_steps()
    for begin in (0, 2000, 4000):
        recorder.row("user_annotation", "training", begin + 5, begin + 1800)
        recorder.row("user_annotation", "forward pass", begin + 8, begin + 405)
    joined = selected_tree(recorder.inspected(tmp_path), Selection("range", first_step=1, last_step=1))
    assert value(joined, "device", "training", "forward pass") == 600
    for begin in (0, 2000, 4000):
        recorder.row("user_annotation", "backward pass", begin + 455, begin + 1050)
    apart = selected_tree(recorder.inspected(tmp_path), Selection("range", first_step=1, last_step=1))
    assert value(apart, "device", "training", "forward pass") == 200
    assert value(apart, "device", "training", "backward pass") == 400


def test_a_module_that_runs_again_in_the_backward_pass_stays_where_it_is(tmp_path: Path) -> None:
    """A checkpoint computes its modules again, inside of a node of autograd that belongs to one of them."""
    recorder = recorded_steps()
    recorder.row("python_function", "nn.Module: Linear_1", 2502, 2509, AUTOGRAD)
    recorder.kernel("void recomputed()", 2503, 2980, 2990, AUTOGRAD)
    tree = selected_tree(recorder.inspected(tmp_path), Selection("module", first_step=1, last_step=1))
    assert value(tree, "device", "Net_0", "Linear_1", "recomputed") == 10


def test_a_closure_is_not_part_of_the_optimizer(tmp_path: Path) -> None:
    recorder = recorded_steps()
    for begin in (0, 2000, 4000):
        recorder.row("user_annotation", "Optimizer.step#Adam.step", begin + 6, begin + 1090)
    tree = selected_tree(recorder.inspected(tmp_path), Selection("module"))
    assert "Optimizer.step#Adam.step" not in tree.name
    assert value(tree, "device", "Net_0") > 0


def test_a_step_that_begins_in_the_optimizer_does_not_nest_the_next_one(tmp_path: Path) -> None:
    """The monitor ends a step in a hook of the optimizer, before the optimizer's own record ends."""
    recorder = recorded_steps()
    for event in recorder.events:
        if event["name"].startswith("ProfilerStep"):
            event["ts"] -= 350  # the optimizer runs until 300 us before the end of a step
    tree = selected_tree(recorder.inspected(tmp_path), Selection("module"))
    assert tree.name.count("Optimizer.step#SGD.step") == 1


@pytest.mark.parametrize("by", [by for by in BY if by not in FLAT])
def test_a_kernel_is_all_that_was_recorded(by: str, tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.lost_kernel(GEMM, 5, 8)
    tree = selected_tree(recorder.inspected(tmp_path), Selection(by))
    assert (tree.kind, tree.name[-1]) == (("root", "unmapped", "kernel"), GEMM)
    kernels = selected_tree(recorder.inspected(tmp_path), Selection("kernel"))
    assert (kernels.kind, kernels.name[-1]) == (("root", "kernel"), GEMM)


def test_devices_are_shown_apart(tmp_path: Path) -> None:
    recorder = recorded_steps()
    for begin in (0, 2000, 4000):
        recorder.kernel("void on_the_second_device()", begin + 30, begin + 300, begin + 400, device=1)
    inspected = recorder.inspected(tmp_path)
    second = selected_tree(inspected, Selection("module", device=1))
    assert value(second, "device") == pytest.approx(300, abs=101)
    assert "on_the_second_device" in second.name
    assert "on_the_second_device" not in selected_tree(inspected, Selection("module")).name
    assert_is_the_account(inspected, second, Selection("module", device=1))


def test_nesting_of_any_depth_is_read(tmp_path: Path) -> None:
    recorder = recorded_steps()
    for level in range(3000):
        recorder.row("python_function", f"deep.py({level % 7}): f{level % 7}", 2300 + level / 100, 2399 - level / 100)
    inspected = recorder.inspected(tmp_path)
    tree = selected_tree(inspected, Selection("line"))
    assert len(tree.parent) < 1000
    assert_is_the_account(inspected, tree, Selection("line"))


def test_waits_and_allocations_are_where_they_happen(tmp_path: Path) -> None:
    recorder = recorded_steps()
    recorder.row("cuda_runtime", "cudaStreamSynchronize", 2310, 2340)
    memory = {"Device Type": 1, "Device Id": 0, "Bytes": 4096, "Addr": 1, "Total Allocated": 1, "Total Reserved": 1}
    recorder.events.append({"ph": "i", "name": "[memory]", "pid": MAIN, "tid": MAIN, "ts": 2215 + 5, "args": memory})
    tree = selected_tree(recorder.inspected(tmp_path), Selection("module", first_step=1, last_step=1))
    assert tree.columns["memory"][node(tree, "Net_0", "Linear_1", "aten::addmm")] == 4096
    assert value(tree, "wait", "Net_0", "Linear_1") > 0


@pytest.mark.skipif(TRACES is None, reason="needs the labelled traces")
@pytest.mark.parametrize(
    "by", ["operator", *(pytest.param(by, marks=pytest.mark.nightly) for by in BY if by != "operator")]
)
def test_the_account_of_public_traces(by: str) -> None:
    assert TRACES is not None
    read = 0
    for path in sorted(TRACES.glob("*.json.gz")):
        if path.stat().st_size < 500_000:
            inspected = InspectedTrace(load(str(path)))
            if inspected.recording is not None:
                assert_is_the_account(inspected, selected_tree(inspected, Selection(by)), Selection(by))
                read += 1
    assert read
