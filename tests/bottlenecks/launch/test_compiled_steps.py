"""Owners of the time of a compiled step, with and without the log of the monitor."""

import json

import pytest
from helpers.draw import drawn

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.bottlenecks.launch.compilation import UNKNOWN, eager_functions
from tb_bottleneck.bottlenecks.launch.compile_log import compile_log
from tb_bottleneck.bottlenecks.launch.compiled_steps import broken_graphs, compiled_steps, recompiled_functions
from tb_bottleneck.diagnosis.parts import Parts, details_of
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.text import efficiency as text
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

BASE_US = 1_700_000_000_000_000
RESUMED = "torch_dynamo_resume_in_forward_at_7"
GUARD = "tensor 'x' size mismatch at index 0 # x = f(x) # m.py:6 in forward"
LOG = {
    "compilations": [
        ["0/0", "forward", "m.py", 5, BASE_US - 10_000_000, 900, ""],
        ["1/0", RESUMED, "m.py", 7, BASE_US - 9_000_000, 800, ""],
        [
            "0/1",
            "forward",
            "m.py",
            5,
            BASE_US + 200_000,
            40_000,
            "tensor 'x' size mismatch at index 0 # x = f(x) # m.py:6 in forward",
        ],
    ],
    "breaks": [["m.py", 7, "forward", "generic_jump TensorVariable()", 2]],
}


def recorded(tmp_path, frames, log=None):
    """Three steps of 100 ms. In each, a graph and a break of 2 ms inside of region 0; the last one compiles first."""
    events, tid = [], {"ph": "X", "pid": 1, "tid": 1}

    def add(cat, name, begin, length):
        events.append(tid | {"cat": cat, "name": name, "ts": begin, "dur": length})

    for step in range(3):
        at = step * 100_000
        add("user_annotation", f"ProfilerStep#{step}", at, 100_000)
        add("cpu_op", "aten::randn", at + 90_000, 5_000)
        compiled = 40_000 if step == 2 else 0
        if compiled:
            add("cpu_op", "_compile.compile_inner (dynamo_timed)", at, compiled)
            add("cpu_op", "bytecode_tracing (dynamo_timed)", at + 10, 1_000)
        begin = at + compiled + 1_000
        add("cpu_op", f"Torch-Compiled Region: 0/{step // 2}", begin, 20_000)
        add("cpu_op", "CompiledFunction", begin + 1_000, 4_000)
        add("cpu_op", "Torch-Compiled Region: 1/0", begin + 7_000, 10_000)
        if frames:
            add("python_function", "m.py(5): forward", begin + 1, 19_000)
            add("python_function", f"m.py(7): {RESUMED}", begin + 7_001, 9_000)
    path = tmp_path / "c.pt.trace.json"
    context = {"tb_bottleneck_late": {"context": {"compile_log": log}}} if log else {}
    path.write_text(json.dumps({"traceEvents": events, "baseTimeNanoseconds": BASE_US * 1000, **context}))
    trace = load(str(path))
    return Recording(trace, find_steps(trace))


def test_with_the_log_of_the_monitor(tmp_path):
    recording = recorded(tmp_path, frames=False, log=LOG)
    found = details_of(recording, Parts()).compilation
    (function,) = found.functions
    assert (function.function, function.line, function.compilations, function.ns) == ("forward", 5, 1, 40e6)
    assert list(function.reasons) == ["tensor 'x' size mismatch at index 0, in m.py:6: x = f(x)"]
    (ended,) = found.breaks
    assert (ended.file, ended.line, ended.ns_per_step) == ("m.py", 7, pytest.approx(2e6))
    assert ended.reason == "a branch depends on the value of a tensor"
    assert [(row.name, row.calls) for row in found.outside] == [("aten::randn", 1)]
    assert (found.regions, found.compile_ns, found.missing) == (2, pytest.approx(40e6 / 3), "")
    assert recompiled_functions(recording).text.startswith("forward (m.py:5), 1 times, 40.0 ms: tensor 'x'")
    assert broken_graphs(recording).text == "forward (m.py:7): a branch depends on the value of a tensor"
    lines = "\n".join(text.compilation_lines(found))
    assert "guard: tensor 'x' size mismatch" in lines
    assert "graph break in m.py:7 forward, 2.00 ms per step" in lines


def test_with_frames_alone(tmp_path):
    found = details_of(recorded(tmp_path, frames=True), Parts()).compilation
    assert [(row.function, row.line, list(row.reasons)) for row in found.functions] == [("forward", 5, [])]
    assert [(row.function, row.line, row.reason) for row in found.breaks] == [("forward", 7, "")]
    assert "TORCH_TRACE" in found.missing


def test_without_both_the_functions_are_not_known(tmp_path):
    recording = recorded(tmp_path, frames=False)
    steps = compiled_steps(recording)
    assert [(entry.function, entry.count, entry.ns) for entry in steps.functions] == [("", 1, 40e6)]
    assert steps.breaks == ()
    assert isinstance(recompiled_functions(recording), Missing)


@pytest.mark.parametrize("log", [None, {"compilations": [], "failures": [["m.py", 5, "forward", "line 7: item()"]]}])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_function_that_runs_uncompiled(tmp_path, log, compiled):
    def add(cat, name, begin, length):
        return {"ph": "X", "pid": 1, "tid": 1, "cat": cat, "name": name, "ts": begin, "dur": length}

    events = [add("user_annotation", f"ProfilerStep#{step}", step * 1_000, 1_000) for step in range(3)]
    for at in (100, 1_100, 2_100):
        events += [
            add("python_function", "torch/_dynamo/eval_frame.py(1076): compile_wrapper", at, 500),
            add("python_function", "contextlib.py(299): helper", at + 1, 1),
            add("python_function", "m.py(5): forward", at + 10, 400),
            add("cpu_op", "aten::mm", at + 20, 300),
        ]
    if compiled:  # one call of three is enough
        events.append(add("cpu_op", "Torch-Compiled Region: 0/0", 1_115, 300))
    path = tmp_path / "u.pt.trace.json"
    context = {"tb_bottleneck_late": {"context": {"compile_log": log}}} if log else {}
    path.write_text(json.dumps({"traceEvents": events, **context}))
    trace = load(str(path))
    recording = Recording(trace, find_steps(trace))
    if compiled:
        assert isinstance(eager_functions(recording), Missing)
        return
    reason, stated = ("line 7: item()", "m.py:7): item()") if log else (UNKNOWN, f"m.py:5): {UNKNOWN}")
    assert eager_functions(recording).text == f"forward ({stated}"
    lines = list(text.compilation_lines(details_of(recording, Parts()).compilation))
    assert "  - m.py:5 forward: runs without compiled code" in lines
    assert f"      {reason}" in lines


def on_a_gpu(tmp_path, *rows):
    """Three steps of 1 ms with small kernels; each calls a compiled function from 50 to 950 us, and has these rows."""
    drawing = (
        "step aaaaaaaaaabbbbbbbbbbcccccccccc\nop ##############################\nsmall .a.b.c.d.a.b.c.d.e.f.a.b.c.d.e"
    )
    raw, host = drawn(drawing), {"ph": "X", "pid": 100, "tid": 100}
    wrapper, function = "torch/_dynamo/eval_frame.py(1076): compile_wrapper", "train.py(5): forward"
    for at in range(0, 3_000, 1_000):
        for name, begin, length in ((wrapper, 50, 900), (function, 60, 800), *rows):
            category = "python_function" if ".py(" in name else "cpu_op"
            raw["traceEvents"].append(host | {"cat": category, "name": name, "ts": at + begin, "dur": length})
    path = tmp_path / "g.pt.trace.json"
    path.write_text(json.dumps(raw | {"with_stack": 1}))
    return diagnose(str(path))


def test_a_function_that_runs_uncompiled_on_a_gpu(tmp_path):
    """The advice is to compile; the evidence tells that torch.compile was called, and gave the function up."""
    found = on_a_gpu(tmp_path)
    (finding,) = [finding for finding in found.findings if finding.cause == "small_kernels"]
    evidence = {row.label: row.text for row in finding.evidence}
    assert evidence["Functions that run without compiled code, and why"] == f"forward (train.py:5): {UNKNOWN}"
    assert [row.failure for row in found.compilation.functions] == [UNKNOWN]
    compiled = on_a_gpu(tmp_path, ("Torch-Compiled Region: 0/0", 70, 700))
    assert all("without compiled code" not in row.label for finding in compiled.findings for row in finding.evidence)
    assert compiled.compilation.regions == 1
    assert not compiled.compilation.functions


@pytest.mark.parametrize(("end_us", "known"), [(240, True), (350, False)])
def test_an_interval_belongs_to_the_compilation_that_fills_more_than_half_of_it(end_us, known):
    log = compile_log({"compile_log": {"compilations": [["0/0", "forward", "train.py", 5, 100, 100, ""]]}})
    found = log.at(150, end_us)
    assert (found is not None) == known


@pytest.mark.parametrize(
    "fact", [None, 3, {"compilations": 1}, {"compilations": [["0/x", "f", "", 0, 0, 0, ""], [], 3]}]
)
def test_damaged_logs(fact):
    assert compile_log({"compile_log": fact}).compilations == ()
