"""Tests of the device's operations: linked to their launch by correlation, and classified by name.

Kernels with unknown names are classified by the operators that launch them.
"""

import json

import pytest
from helpers.draw import drawn, drawn_trace

from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.trace.device_ops import Work, work_of_operator
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.trace import Trace, load

DRAWING = """
    launch  |.|.|.......
    gpu     ...aa.......
    nccl    .....bb.....
    h2d     .......cc...
"""


def test_each_operation_knows_its_call():
    trace = drawn_trace(DRAWING)
    ops = trace.device_ops
    assert ops.launched.all()
    assert (trace.calls.start[ops.call] / 1e5).tolist() == [0, 2, 4]
    assert ops.work.tolist() == [Work.CONTRACTION, Work.COLLECTIVE, Work.UPLOAD]
    assert trace.calls.role.tolist() == [Role.LAUNCH, Role.LAUNCH, Role.COPY]


def written(tmp_path, change) -> Trace:
    raw = drawn(DRAWING)
    change(raw["traceEvents"])
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(raw))
    return load(str(path))


def test_one_graph_launch_has_many_kernels(tmp_path):
    def one_launch(events):
        for event in events:
            event["args"]["correlation"] = 5

    trace = written(tmp_path, one_launch)
    assert trace.device_ops.launched.all()
    assert len(set(trace.device_ops.call.tolist())) == 1


def test_work_whose_launch_was_not_recorded_says_so(tmp_path):
    def unlinked(events):
        for event in events:
            if event["cat"] == "kernel":
                event["args"].pop("correlation")

    assert written(tmp_path, unlinked).device_ops.launched.tolist() == [False, False, True]


def test_the_report_is_about_the_device_with_most_work(tmp_path):
    def spread(events):
        for event in events:
            if event["cat"] == "kernel":
                event["args"]["device"] = 3

    trace = written(tmp_path, spread)
    assert trace.device_index == 3
    assert len(trace.device_ops) == 2
    assert len(trace.all_device_ops) == 3


def test_multiprocessors_come_from_the_description_else_from_the_kernels(tmp_path):
    """Torch 1.8 describes no device; torch 1.9 to 1.11 write `blocks per SM` on each kernel."""

    def result(events):
        for event in events:
            if event["cat"] == "kernel":
                event["args"] |= {"grid": [6272, 1, 1], "blocks per SM": 78.4}

    assert drawn_trace(DRAWING).multiprocessors == 108
    raw = drawn(DRAWING, deviceProperties=[])
    result(raw["traceEvents"])
    path = tmp_path / "t.json"
    path.write_text(json.dumps(raw))
    assert load(str(path)).multiprocessors == 80
    assert drawn_trace(DRAWING, deviceProperties=[]).multiprocessors is None


BUSY = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    op      ###.......###.......###.......
    launch  .||.......||........||........
    gpu     ..aaaaabbbbcccccdddddeeeefffff
"""


@pytest.mark.parametrize(
    ("operator", "work"),
    [
        ("aten::addmm", Work.CONTRACTION),
        ("aten::cudnn_convolution", Work.CONTRACTION),
        ("aten::_flash_attention_forward", Work.CONTRACTION),
        ("aten::gelu", Work.STREAMING),
        ("aten::native_layer_norm", Work.STREAMING),
        ("c10d::allreduce_", Work.COLLECTIVE),
        ("vendor::secret_op", Work.UNKNOWN),
        ("", Work.UNKNOWN),
    ],
)
def test_an_operator_determines_the_work_of_its_kernels(operator, work):
    assert work_of_operator(operator) is work


def unseen(tmp_path, operator):
    """Returns the drawing with unknown kernel names, four kernels for each drawn one, launched by this operator."""
    whole = drawn(BUSY, 1000)
    events = []
    for event in whole["traceEvents"]:
        if event["cat"] == "cpu_op":
            event["name"] = operator
        if event["cat"] != "kernel":
            events.append(event)
            continue
        part = event["dur"] / 4
        events += [{**event, "name": "unseen_17", "dur": part, "ts": event["ts"] + part * n} for n in range(4)]
    path = tmp_path / "unseen.pt.trace.json"
    path.write_text(json.dumps({**whole, "traceEvents": events}))
    return str(path)


@pytest.mark.parametrize(("operator", "regime"), [("aten::convolution", "compute"), ("aten::mul", "memory")])
def test_a_busy_device_is_judged_by_its_operators_if_kernel_names_are_unknown(tmp_path, operator, regime):
    report = diagnose(unseen(tmp_path, operator))
    assert (report.verdict.regime, report.verdict.severity) == (regime, "none")
    assert report.verdict.confidence == "low"


def test_if_both_are_unknown_the_work_is_unexplained(tmp_path):
    path = unseen(tmp_path, "vendor::secret_op")
    assert set(load(path).all_device_ops.work.tolist()) == {int(Work.UNKNOWN)}
    report = diagnose(path)
    assert (report.verdict.regime, report.verdict.severity, report.verdict.confidence) == ("unexplained", "none", "low")
    assert "Nothing else" not in report.verdict.headline
