"""Shapes are stored once per distinct call and decoded on access."""

import json

import pytest

from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.trace import load


def op(dims, **args):
    shapes = {"Input Dims": dims, "Input type": ["float"] * len(dims), "Concrete Inputs": [""] * len(dims)}
    row = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 1}
    return row | {"args": shapes | args}


@pytest.mark.parametrize("indent", [None, 2])
def test_calls_with_the_same_inputs_share_a_signature(tmp_path, indent):
    events = [op([[2, 3], [3, 4]]), op([[2, 3], [3, 4]]), op([[5, 3], [3, 4]]), op([]) | {"args": {}}]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": events}, indent=indent))
    trace = load(str(path))
    rows = trace.events.signature.tolist()
    assert rows[0] == rows[1] != rows[2]
    assert rows[3] == 0
    assert operands_of(trace.signatures[rows[0]]).dims == ((2, 3), (3, 4))
    assert operands_of(trace.signatures[rows[0]]).types == ("float", "float")


def test_an_event_that_needs_repair_keeps_its_shapes(tmp_path):
    path = tmp_path / "t.json"
    broken = json.dumps(op([[2, 3], [3, 4]])).replace("aten::mm", 'a"b')
    whole = json.dumps(op([[1, 1]]))
    path.write_text(f'{{"traceEvents": [{whole},{broken},{whole}]}}')
    trace = load(str(path))
    found = {operands_of(trace.signatures[row]).dims for row in trace.events.signature.tolist()}
    assert ((2, 3), (3, 4)) in found


def test_the_old_spelling_is_known(tmp_path):
    event = op([[7, 8]])
    event["args"] = {"Input dims": [[7, 8]], "Input type": []}
    path = tmp_path / "t.json"
    path.write_text(json.dumps([event]))
    trace = load(str(path))
    assert operands_of(trace.signatures[trace.events.signature[0]]).dims == ((7, 8),)


@pytest.mark.parametrize("text", [b"", b"{}", b"[[-1]]", b'[["x"]]', b"[[[[1]]]]", b"[1"])
def test_what_is_no_list_of_shapes_is_none(text):
    assert operands_of((text, b"", b"")) is None


def test_lists_of_tensors_are_shapes_of_shapes():
    assert operands_of((b"[[[1, 2], [3]], []]", b'["TensorList", "Scalar"]', b"")).dims == (((1, 2), (3,)), ())
