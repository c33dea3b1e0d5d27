"""Tests of defects of a recording that can be judged, including those that only its account shows.

Idle time without host activity has no owner, and one long pause without steps is a start-up unless something recurs.
"""

import json

import pytest
from helpers.draw import drawn, drawn_trace

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.quality.degradations import degradations_of, warmup_defect
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

WAITING = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    loader  #####.....#####.....#####.....
    op      .....##........##........##...
    launch  .....||........||........||...
    gpu     ......aabb......ccdd......eeff
"""
BUSY = """
    gpu     .aaaaabbbbb.ccccddddd.eeeeffff
"""


def recorded(tmp_path, drawing, without=(), kernel=None):
    whole = drawn(drawing, 1000)
    events = []
    for event in whole["traceEvents"]:
        if event["cat"] in without:
            continue
        if event["cat"] == "kernel" and kernel:
            event["name"] = kernel
        parts = 2 if event["cat"] in ("kernel", "cuda_runtime") else 1
        for n in range(parts):
            part = {**event, "dur": event["dur"] / parts, "ts": event["ts"] + n * event["dur"] / parts}
            if parts > 1:
                part["args"] = {**event["args"], "correlation": event["args"]["correlation"] * 10 + n}
            events.append(part)
    path = tmp_path / "seen.pt.trace.json"
    path.write_text(json.dumps({**whole, "traceEvents": events}))
    return diagnose(str(path))


HOST = ("cpu_op", "user_annotation", "python_function")


def test_with_host_rows_the_recording_shows_why_the_device_waits(tmp_path):
    assert recorded(tmp_path, WAITING).verdict.regime == "input"


@pytest.mark.parametrize("without", [HOST, (*HOST, "cuda_runtime")])
def test_without_them_it_gets_no_verdict(tmp_path, without):
    report = recorded(tmp_path, WAITING, without)
    assert (report.health.status, report.health.reasons[0].code) == ("incomplete", "host_not_recorded")
    assert "ProfilerActivity.CPU" in report.health.reasons[0].fix
    assert not report.HasField("verdict")
    assert {row.regime: row.share for row in report.account}["host"] == 0, "no Python was recorded"


def test_a_busy_device_needs_no_host_to_be_judged(tmp_path):
    report = recorded(tmp_path, BUSY, HOST)
    assert report.verdict.regime == "compute"
    unseen = recorded(tmp_path, BUSY, (*HOST, "cuda_runtime"))
    shares = {row.regime: row.share for row in unseen.account}
    assert unseen.verdict.regime == "compute"
    assert shares["host"] == 0, "no Python was recorded"
    assert shares["unexplained"] == pytest.approx(2 / 29, abs=0.001)


def test_without_runtime_rows_operators_replace_launches_and_waits_are_not_judged(tmp_path):
    """
    The operators run for 10 ms and kernels for a tenth of that; the backward pass has its own thread.
    """
    drawing = """
        step    aaaaaaaaaabbbbbbbbbbcccccccccc
        op      ##########.########..#########
        gpu     .a..b..c..d.e..f..g..h.i..j...
    """
    report = recorded(tmp_path, drawing, ("cuda_runtime",))
    assert report.verdict.regime == "launch"
    assert "calls_not_recorded" in [reason.code for reason in report.health.reasons]
    status = {regime.regime: regime.status for regime in report.regimes}
    assert (status["sync"], status["allocator"]) == ("abstains", "abstains")


def test_a_little_unknown_time_withholds_no_fix_of_the_devices_work(tmp_path):
    """The device is idle for 5 of 30 columns, and nothing shows why; the products do not depend on it."""
    drawing = """
        gpu     .aaaaaaaabbb....bbbbcccccddddd
    """
    report = recorded(tmp_path, drawing, HOST, "ampere_sgemm_128x64_tn")
    assert report.health.status == "degraded"
    assert report.health.reasons[0].code == "host_not_recorded"
    assert report.verdict.regime == "compute"
    assert "fp32_matmul" in [finding.cause for finding in report.findings]
    assert {regime.regime: regime.status for regime in report.regimes}["host"] == "abstains"


ONE_PAUSE = """
    op      ##########..........................########
    gpu     .aabbccddee.........................ffgghhii
"""


@pytest.mark.parametrize(
    ("row", "steady"),
    [
        ("", False),
        ("    loader  ...........#########################.......\n", True),
        ("    save    ...........#########################.......\n", True),
    ],
)
def test_a_single_pause_is_a_start_unless_it_is_a_wait_for_data_or_a_checkpoint(row, steady):
    trace = drawn_trace(ONE_PAUSE + row, 1000)
    steps = find_steps(trace)
    assert steps.basis == "whole"
    defect = warmup_defect(Recording(trace, steps))
    assert (defect is None) is steady
    assert steady or defect.code == "warmup"


def test_in_a_recording_with_steps_a_pause_is_no_start():
    trace = drawn_trace(ONE_PAUSE + "    step    aaaaaaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbb\n", 1000)
    assert warmup_defect(Recording(trace, find_steps(trace))) is None


STEADY = """
    step    aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbcccccccccccccccccccc
    op      #...................#...................#...................
    gpu     .aaaaaabbbbbbbcccccc.aaaaaabbbbbbbcccccc.aaaaaabbbbbbbcccccc
"""
UNIT_US = 500


def codes(trace):
    return [defect.code for defect in degradations_of(Recording(trace, find_steps(trace)))]


def written(tmp_path, events):
    path = tmp_path / "d.pt.trace.json"
    whole = drawn(STEADY, UNIT_US)
    path.write_text(json.dumps(whole | {"traceEvents": whole["traceEvents"] + events}))
    return str(path)


def row(category, name, begin_ms, length_ms, **more):
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 100,
        "tid": 100,
        "ts": begin_ms * 1000,
        "dur": length_ms * 1000,
    } | more


def test_a_steady_recording_is_not_doubted():
    assert codes(drawn_trace(STEADY, UNIT_US)) == []


def test_lost_launches_degrade_a_recording_if_the_device_waits(tmp_path):
    """The same third of the launches is lost; it matters if the device is idle."""
    waiting = """
        step    aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbcccccccccccccccccccc
        op      ####################....................####################
        gpu     .aaaaaabb...bbbcccccc.aaaa...bbb..cccccc.aaaaaabb..bbbbcccccc
    """
    for drawing, doubted in ((waiting, True), (STEADY, False)):
        whole = drawn(drawing, UNIT_US)
        calls = [event for event in whole["traceEvents"] if event["cat"] == "cuda_runtime"]
        lost = {id(event) for event in calls[::3]}
        whole["traceEvents"] = [event for event in whole["traceEvents"] if id(event) not in lost]
        path = tmp_path / "lost.pt.trace.json"
        path.write_text(json.dumps(whole))
        assert ("launches_lost" in codes(load(str(path)))) is doubted


def test_marks_of_steps_that_reach_into_each_other_are(tmp_path):
    path = written(tmp_path, [row("user_annotation", "ProfilerStep#9", 5, 20)])
    assert "overlapping_steps" in codes(load(path))
    report = diagnose(path)
    assert report.health.status == "degraded"
    assert report.verdict.confidence != "high"


def test_code_that_is_loaded_while_the_device_waits_is(tmp_path):
    path = tmp_path / "s.pt.trace.json"
    whole = drawn(
        """
        step    aaaaaaaaaabbbbbbbbbbcccccccccc
        op      ####......####......####......
        gpu     ....aabbcc....aabbcc....aabbcc
    """,
        1000,
    )
    loading = row("overhead", "Lazy Function Loading", 10, 3, pid=-1, tid=0)
    path.write_text(json.dumps(whole | {"traceEvents": [*whole["traceEvents"], loading]}))
    assert "starting" in codes(load(str(path)))
    assert diagnose(str(path)).findings[0].cause in ("first_runs", "small_kernels")


def test_profiler_overhead_does_not_matter_if_the_run_is_device_bound(tmp_path):
    """Recording these operators takes a tenth of the time, on a host that waits for the device or does not."""
    many = [row("cpu_op", "aten::add", at * 0.004, 0.001) for at in range(7500)]
    assert "profiler_inflated" not in codes(load(written(tmp_path, many)))
    late = drawn(
        """
        step    aaaaaaaaaabbbbbbbbbbcccccccccc
        launch  .....|.........|.........|....
        gpu     ......aaaa......bbbb......cccc
    """,
        1000,
    )
    path = tmp_path / "late.pt.trace.json"
    path.write_text(json.dumps(late | {"traceEvents": late["traceEvents"] + many}))
    assert "profiler_inflated" in codes(load(str(path)))


LATE = """
    {row}
    launch  ....................................||||||||....
    gpu     ......................................abcdefgh..
"""


def test_a_recording_of_the_optimizer_alone_says_so(tmp_path):
    """ "About 6.4 times faster" was of a part that took 1.6 of the 54 ms of the whole step."""
    optimizer = row("user_annotation", "Optimizer.step#Adam.step", 0, 30)
    assert "optimizer_alone" in codes(load(written(tmp_path, [optimizer])))
    backward = row("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 1, 1)
    assert "optimizer_alone" not in codes(load(written(tmp_path, [optimizer, backward])))
    assert "optimizer_alone" not in codes(load(written(tmp_path, [])))


def with_shapes(shape, name="aten::bmm"):
    """Returns operators that launch a kernel each; `shape` gives the inputs of the operator with this number."""
    trace = drawn("op ##..##..##..\nlaunch |...|...|...\ngpu .aaa.bbb.ccc", 1000)
    number = 0
    for event in trace["traceEvents"]:
        if event["cat"] == "cpu_op":
            event["name"] = name
            event["args"] = {"Input Dims": shape(number)} if shape(number) else {}
            number += 1
    return trace


@pytest.mark.parametrize(
    ("trace", "alone"),
    [
        (with_shapes(lambda number: [[8, 64, 64], [8, 64, 64]]), True),
        (with_shapes(lambda number: [[8, 64, 64 * number], [8, 64, 64]]), False),
        (with_shapes(lambda number: []), False),
        (with_shapes(lambda number: [[8, 64, 64]], "Torch-Compiled Region"), False),
    ],
    ids=["the same shapes", "layers of several sizes", "no shapes", "a compiled model"],
)
def test_a_recording_of_one_operator_says_so(tmp_path, trace, alone):
    path = tmp_path / "one.pt.trace.json"
    path.write_text(json.dumps(trace))
    assert ("one_operator" in codes(load(str(path)))) == alone


def test_a_long_time_before_the_first_kernel_is_told_where_no_step_shows_it():
    assert "late_start" in codes(
        drawn_trace(LATE.format(row="op      ####............................########........"))
    )
    assert "late_start" not in codes(
        drawn_trace(LATE.format(row="op      ................................########........"))
    )


def test_the_first_batch_is_judged_with_the_work_on_it(tmp_path):
    """The loader takes 30 ms, the device 8: the device is idle for the batch, and that is not left out."""
    path = tmp_path / "first.pt.trace.json"
    row = "loader  ..################################................"
    path.write_text(json.dumps(drawn(LATE.format(row=row), 1000)))
    report = diagnose(str(path))
    assert report.verdict.regime == "input"
    assert report.verdict.confidence == "low"
    assert "late_start" not in [reason.code for reason in report.health.reasons]
