"""Kernels with unknown names are classified by the operators that launch them."""

import json

import pytest
from helpers.draw import drawn

from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.trace.device_ops import Work, work_of_operator
from tb_bottleneck.trace.trace import load

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
