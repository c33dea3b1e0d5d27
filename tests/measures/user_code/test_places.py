"""The lines of the user's program that causes come from."""

import json

import numpy as np
import pytest
from helpers.draw import drawn
from simulate.examine import measured
from simulate.problems import PROBLEMS

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.bottlenecks.places import (
    KERNELS_OF_CAUSE,
    ROWS_OF_CAUSE,
    WAITS_OF_CAUSE,
    cause_places,
    wait_times,
)
from tb_bottleneck.bottlenecks.texts import regime_advice
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.measures.user_code.places import HostTimes, Place, located, places_of
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text.report import render
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

MAIN, AUTOGRAD = 100, 200
NODE = "autograd::engine::evaluate_function: AddmmBackward0"


def _row(category, name, ts, dur, tid=MAIN, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": MAIN, "tid": tid, "ts": ts, "dur": dur, "args": args}


def _frame(name, ts, dur, tid=MAIN):
    return _row("python_function", name, ts, dur, tid)


def _each_step(*rows, steps=4, length=10_000):
    """Returns the rows of the first step, repeated in each step."""
    return [row | {"ts": row["ts"] + step * length} for step in range(steps) for row in rows]


def _diagnosed(tmp_path, drawing, *rows, stacks=True):
    whole, path = drawn(drawing, 1000, with_stack=int(stacks)), tmp_path / "t.pt.trace.json"
    whole["traceEvents"] += _each_step(*rows)
    path.write_text(json.dumps(whole))
    report = diagnose(str(path))
    return report, {finding.cause: finding for finding in report.findings}


def _line(finding):
    place = finding.where[0]
    return place.file, place.line, place.function


PAUSED = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd
    op      ###.......###.......###.......###.......
    gpu     .aa.......b.c.......d.e.......f.g......h
"""
LOADING = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd
    loader  ######....######....######....######....
    op      ......###.......###.......###.......###.
    gpu     .......a.b.......c.d.......e.f.......g.h
"""
COPYING = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd
    h2d     .aaaaa.....bbbbb.....ccccc.....ddddd....
    gpu     ......aaa.......bbb.......ccc.......ddd.
"""


def test_the_users_line_stands_above_the_package_that_runs(tmp_path):
    _, findings = _diagnosed(
        tmp_path,
        PAUSED,
        _frame("train.py(80): main", 0, 9_900),
        _frame("train.py(41): add", 3_100, 6_500),
        _frame("pandas/core/reshape/concat.py(162): concat", 3_200, 6_300),
        _frame("pandas/core/internals/concat.py(59): concatenate_managers", 3_300, 6_000),
    )
    place = findings["host_python"].where[0]
    assert (place.file, place.line, place.function) == ("train.py", 41, "add")
    assert place.share > 0.9
    assert list(place.chain) == [
        "train.py(80): main",
        "train.py(41): add",
        "pandas/core/reshape/concat.py(162): concat",
        "pandas/core/internals/concat.py(59): concatenate_managers",
    ]


def test_the_hooks_of_the_monitor_are_not_part_of_a_call_chain(tmp_path):
    _, findings = _diagnosed(
        tmp_path,
        PAUSED,
        _frame("train.py(41): log", 3_100, 6_500),
        _frame("/opt/tb_bottleneck/monitor/hooks/interruptions.py(70): call", 3_150, 6_450),
        _frame("torch/utils/tensorboard/writer.py(367): add_scalar", 3_200, 6_300),
    )
    place = findings["logging"].where[0]
    assert (place.file, place.line, place.function) == ("train.py", 41, "log")
    assert place.chain == ["train.py(41): log", "torch/utils/tensorboard/writer.py(367): add_scalar"]


ALREADY_RUNNING = (
    _frame("train.py(90): main", 0, 39_000),
    _frame("torch/profiler/profiler.py(1227): step", 2, 60),
    _frame("torch/autograd/profiler.py(414): _start_trace", 3, 40),
)


def test_a_function_that_ran_when_the_recording_began_has_no_line(tmp_path):
    """The profiler gives it the line that started the profiler."""
    whole, path = drawn(PAUSED, 1000, with_stack=1), tmp_path / "t.pt.trace.json"
    whole["traceEvents"] += ALREADY_RUNNING
    path.write_text(json.dumps(whole))
    report = diagnose(str(path))
    place = next(finding for finding in report.findings if finding.cause == "host_python").where[0]
    assert (place.file, place.line, place.function) == ("train.py", 0, "main")
    assert report.verdict.headline.endswith("Most of it is in main (train.py).")
    text = render(report)
    assert "in train.py main: " in text
    assert "(90)" not in text
    assert ":90" not in text


def test_its_line_is_kept_if_it_began_in_the_recording(tmp_path):
    """The first frame of a thread that starts later, and calls nothing else at once."""
    rows = (*ALREADY_RUNNING, _frame("data.py(7): load", 4_000, 900, tid=300))
    recording = _recorded(tmp_path, *rows)
    assert [place.line for place in _at(recording, 4_500, tid=300)] == [7]


def test_functions_that_are_called_later_have_their_lines(tmp_path):
    recording = _recorded(tmp_path, *ALREADY_RUNNING, _frame("train.py(41): add", 100, 800))
    [place] = _at(recording, 500)
    assert (place.line, list(place.chain)) == (41, ["train.py: main", "train.py(41): add"])


def test_a_comprehension_belongs_to_its_function(tmp_path):
    rows = (_frame("train.py(41): add", 3_100, 6_500), _frame("train.py(44): <listcomp>", 3_200, 6_300))
    _, findings = _diagnosed(tmp_path, PAUSED, *rows)
    assert _line(findings["host_python"]) == ("train.py", 41, "add")
    assert findings["host_python"].where[0].chain[-1] == "train.py(44): <listcomp>"


@pytest.mark.parametrize(
    ("cause", "line", "called"),
    [
        ("checkpointing", "train.py(41): keep", "torch/serialization.py(944): save"),
        ("checkpointing", "train.py(41): keep", "transformers/trainer.py(3900): save_model"),
        ("evaluation", "train.py(41): validate", "torch/nn/modules/module.py(1782): _call_impl"),
        ("evaluation", "train.py(41): every_epoch", "transformers/trainer.py(4147): evaluate"),
        ("garbage_collection", "train.py(41): tidy", "<built-in function collect>"),
        ("logging", "train.py(41): log", "torch/utils/tensorboard/writer.py(367): add_scalar"),
        ("first_runs", "train.py(41): step", "torch/_dynamo/convert_frame.py(1000): _compile"),
        ("batches_in_the_loop", "train.py(41): prepare", "torchvision/transforms/functional.py(175): to_tensor"),
    ],
)
def test_a_cause_is_named_by_the_line_that_calls_the_package(tmp_path, cause, line, called):
    backward = _row("cpu_op", NODE, 100, 50)
    _, findings = _diagnosed(tmp_path, PAUSED, backward, _frame(line, 3_100, 6_500), _frame(called, 3_200, 6_300))
    place = findings[cause].where[0]
    assert (f"{place.file}({place.line}): {place.function}", place.chain[-1]) == (line, called)


def test_a_loader_in_the_main_process_is_named_by_the_dataset(tmp_path):
    rows = (
        _frame("train.py(80): main", 0, 9_900),
        _frame("torch/utils/data/dataloader.py(720): __next__", 10, 5_900),
        _frame("data/images.py(12): __getitem__", 1_000, 4_800),
        _frame("numpy/fft/_pocketfft.py(120): fft", 1_100, 4_000),
    )
    _, findings = _diagnosed(tmp_path, LOADING, *rows)
    assert _line(findings["loader_in_main_process"]) == ("data/images.py", 12, "__getitem__")


def test_work_of_the_device_is_named_by_the_line_that_launches_it(tmp_path):
    """The calls that launch the copies come 5 us before them; another line runs while the copies do."""
    rows = (_frame("train.py(20): upload", 900, 98), _frame("train.py(30): forward", 999, 8_000))
    _, findings = _diagnosed(tmp_path, COPYING, *rows)
    [cause] = [name for name in findings if findings[name].regime == "transfer"]
    assert _line(findings[cause]) == ("train.py", 20, "upload")


def test_waits_are_named_by_the_line_that_reads():
    recording = measured(PROBLEMS["scalar reads in the forward pass"].make(1).but(stacks=True))
    place = cause_places(recording, Regime.SYNC, "scalar_reads")[0]
    assert (place.file, place.line, place.function) == ("train.py", 42, "train_step")
    assert cause_places(recording, Regime.SYNC, "data_dependent_shapes") == ()


def _recorded(tmp_path, *rows):
    """Returns a recording of a run on the CPU, with the rows in the first of two steps."""
    events = [_row("user_annotation", f"ProfilerStep#{n}", n * 1000, 1000) for n in range(2)]
    events += [_row("cpu_op", "aten::mm", n * 1000, 900) for n in range(2)]
    path = tmp_path / "t.pt.trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "with_stack": 1, "traceEvents": [*events, *rows]}))
    trace = load(str(path))
    return Recording(trace, find_steps(trace))


def _at(recording, us, tid=MAIN):
    """Returns the places at one moment of a thread."""
    thread = next(row for row, thread in enumerate(recording.trace.threads) if str(tid) in str(thread))
    return places_of(recording, HostTimes(np.array([thread]), np.array([us * 1000]), np.ones(1)))


FORWARD = (
    _frame("train.py(30): step", 0, 950),
    _frame("model.py(8): forward", 10, 300),
    _frame("nn.Module: Linear_3", 20, 200),
    _row("cpu_op", "aten::t", 30, 5, **{"Sequence number": 7}),
    _row("cpu_op", "aten::addmm", 40, 100, **{"Sequence number": 7}),
)
BACKWARD = _row(
    "cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 500, 100, AUTOGRAD, **{"Sequence number": 7}
)


def test_the_backward_pass_is_named_by_the_forward_line(tmp_path):
    recording = _recorded(tmp_path, *FORWARD, BACKWARD)
    [place] = _at(recording, 550, AUTOGRAD)
    assert (place.file, place.function, place.module) == ("model.py", "forward", "Linear_3")


def test_a_backward_operator_without_a_link_belongs_to_the_waiting_line(tmp_path):
    unlinked = BACKWARD | {"args": {}}
    [place] = _at(_recorded(tmp_path, *FORWARD, unlinked), 550, AUTOGRAD)
    assert (place.file, place.function) == ("train.py", "step")


def test_a_later_forward_operator_is_not_the_one_of_the_backward(tmp_path):
    """Threads count for themselves, so a number may come again."""
    later = _row("cpu_op", "aten::addmm", 700, 10, **{"Sequence number": 7})
    forward = [row for row in FORWARD if "Sequence number" not in row["args"]]
    [place] = _at(_recorded(tmp_path, *forward, BACKWARD, later), 550, AUTOGRAD)
    assert (place.file, place.function) == ("train.py", "step")


def test_the_programs_own_backward_function_is_named(tmp_path):
    own = _frame("kernels.py(5): backward", 510, 80, AUTOGRAD)
    [place] = _at(_recorded(tmp_path, *FORWARD, BACKWARD, own), 550, AUTOGRAD)
    assert (place.file, place.function) == ("kernels.py", "backward")


def test_a_run_beside_its_device_has_the_lines_of_its_work(tmp_path):
    recording = _recorded(tmp_path, *FORWARD)
    assert cause_places(recording, Regime.GPU_UNUSED, "model_on_cpu")[0].function == "step"


def test_a_moment_outside_all_frames_has_no_place(tmp_path):
    recording = _recorded(tmp_path, *FORWARD)
    assert _at(recording, 990) == ()
    assert places_of(recording, HostTimes(np.array([-1]), np.array([100]), np.ones(1))) == ()
    assert located(recording, wait_times(recording)).user.tolist() == []


def test_names_are_cut(tmp_path):
    rows = (_frame("x" * 500 + ".py(3): " + "f" * 500, 0, 950), _frame("nn.Module: " + "M" * 500, 10, 900))
    [place] = _at(_recorded(tmp_path, *rows), 500)
    assert max(map(len, (place.file, place.function, place.module, *place.chain))) <= 160


def test_the_optimizers_line_is_not_that_of_all_dispatching(tmp_path):
    """Of the time of `launch`, the cause about the optimizer takes what its step dispatches."""
    optimizer = _row("user_annotation", "Optimizer.step#SGD.step", 600, 300)
    rows = (_frame("train.py(30): forward", 0, 500), _frame("train.py(50): update", 550, 400), optimizer)
    small = [_row("cpu_op", "aten::add_", at, 2) for at in range(100, 900, 4)]
    recording = _recorded(tmp_path, *rows, *small)
    functions = {place.function for place in cause_places(recording, Regime.LAUNCH, "small_operators")}
    assert functions == {"forward", "update"}
    assert {place.function for place in cause_places(recording, Regime.LAUNCH, "optimizer_for_loop")} == {"update"}


TWO_KERNELS = """
    step    aaaaaaaaaabbbbbbbbbb
    launch  .|..|......|..|.....
    gpu     ..aaa.bb....ccc.dd..
"""


@pytest.mark.parametrize(
    ("cause", "regime", "kernel"),
    [
        ("misaligned_shapes", Regime.COMPUTE, "cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_nn_align1"),
        ("fp32_matmul", Regime.COMPUTE, "ampere_sgemm_128x64_tn"),
        ("double_precision", Regime.COMPUTE, "ampere_dgemm_128x64_tn"),
        ("unfused_pointwise", Regime.MEMORY, "void at::native::vectorized_elementwise_kernel<4>"),
    ],
)
def test_a_cause_about_kernels_is_named_by_where_they_are_launched(tmp_path, cause, regime, kernel):
    """Longer kernels of the same regime, and of others, are launched in another line."""
    whole, path = drawn(TWO_KERNELS, 1000, with_stack=1), tmp_path / "t.pt.trace.json"
    kernels = sorted((row for row in whole["traceEvents"] if row.get("cat") == "kernel"), key=lambda row: row["ts"])
    for row in kernels[1::2]:
        row["name"] = kernel
    lines = (_frame("model.py(8): encode", 500, 2_000), _frame("model.py(20): decode", 3_500, 2_000))
    whole["traceEvents"] += _each_step(*lines, steps=2)
    path.write_text(json.dumps(whole))
    trace = load(str(path))
    [place] = cause_places(Recording(trace, find_steps(trace)), regime, cause)
    assert (place.function, place.share) == ("decode", 1.0)


@pytest.mark.parametrize("names", [["publish metrics"], ["publish metrics", "ProfilerStep#9"]])
def test_without_frames_the_programs_own_blocks_are_named(tmp_path, names):
    """The device waits for 7 ms in each step, and the program has marked 6 of them."""
    blocks = [_row("user_annotation", name, 3_500, 6_000) for name in names]
    report, findings = _diagnosed(tmp_path, PAUSED, *blocks, stacks=False)
    [place] = findings["host_python"].where
    assert (place.block, place.file, place.line) == ("publish metrics", "", 0)
    assert 0.8 < place.share < 0.9
    assert "stacks_not_recorded" in [reason.code for reason in report.health.reasons], "a block is no line"


def test_without_frames_nothing_is_named_and_the_recording_says_why(tmp_path):
    report, findings = _diagnosed(tmp_path, PAUSED, stacks=False)
    assert list(findings["host_python"].where) == []
    [reason] = [reason for reason in report.health.reasons if reason.code == "stacks_not_recorded"]
    assert "with_stack=True" in reason.fix
    recorded, findings = _diagnosed(tmp_path, PAUSED, _frame("lightning/loop.py(3): run", 0, 9_000))
    assert list(findings["host_python"].where) == []
    assert "stacks_not_recorded" not in [reason.code for reason in recorded.health.reasons]


def test_the_table_lists_causes_that_exist():
    known = {cause for regime in REGIMES for cause in regime_advice(regime).causes}
    assert set(ROWS_OF_CAUSE) | set(KERNELS_OF_CAUSE) <= known
    assert set(WAITS_OF_CAUSE) <= set(regime_advice(Regime.SYNC).causes)


def test_a_place_has_the_fields_of_the_report():
    read_later = {"source", "source_begin"}
    assert set(pb.Place.DESCRIPTOR.fields_by_name) - read_later == set(Place.__dataclass_fields__)
