"""The text in a terminal: first the verdict, then the reason, then the fix."""

import json
import re

import pytest
from helpers.draw import drawn

from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text.report import render


def text_of(tmp_path, drawing, **header):
    path = tmp_path / "run.pt.trace.json"
    path.write_text(json.dumps(drawn(drawing, 1000, **header)))
    return render(diagnose(str(path)))


def test_the_answer_comes_first_and_the_fix_is_code(tmp_path):
    text = text_of(
        tmp_path,
        """
        step    aaaaaaaaaabbbbbbbbbbcccccccccc
        loader  ####......####......####......
        gpu     ....aabbcc....aabbcc....aabbcc
    """,
    )
    lines = text.splitlines()
    assert lines[0] == "run.pt.trace.json"
    assert lines[2].startswith("Let worker processes create the batches: about 1.5")
    assert lines[3] == "The GPU waits for the next batch during 40 % of each step."
    assert "       DataLoader(dataset, batch_size=..., num_workers=1" in text
    assert "cost: 40 % of the time; 1.52x as fast (" in text
    assert "   Documentation: https://docs.pytorch.org/docs/stable/data.html\n" in text
    assert "What to change first" in text
    assert re.search(r"  Waiting for data +40 %  4.00 ms  ██████████\n", text)


def test_a_recording_without_steps_is_not_described_per_step(tmp_path):
    text = text_of(
        tmp_path,
        """
        op      ########################
        gpu     .a..b..c..d..e..f..g..h.
    """,
    )
    assert "Kernels in all: 8" in text
    assert "per step" not in text.partition("1. ")[2].partition("To confirm")[0]
    assert "      fix: for batch in batches:\n           # what repeats" in text
    assert "               model(batch)\n" in text
    assert "in requests" not in text, "nothing in the recording shows a server"


@pytest.mark.parametrize("basis", ["whole", "inferred"])
def test_missing_marks_are_no_proof_that_step_was_not_called(basis):
    """Without a schedule, the profiler writes no marks although prof.step() is called."""
    window = pb.Window(steps=1 if basis == "whole" else 4, basis=basis, end_ns=1e6)
    text = render(pb.Report(source="x", evidence_source="trace", window=window))
    assert "no step marks were recorded" in text
    assert "not called" not in text


def test_an_answer_from_kernel_names_alone_names_the_missing_signals(tmp_path):
    text = text_of(
        tmp_path,
        """
        step    aaaaaaaaaabbbbbbbbbbcccccccccc
        gpu     .aaabbbccc.dddeeefff.ggghhhiii
    """,
        deviceProperties=[],
    )
    said = " ".join(text.split())
    assert "confidence. The limit is known from kernel names only; with record_shapes=True" in said
    assert "Device: an NVIDIA device (name not recorded)" in text


def test_an_incomplete_recording_has_a_reason_and_a_fix(tmp_path):
    text = text_of(tmp_path, "step aaaa\nop ####")
    assert "There is no verdict, because the recording is not sufficient." in text
    assert "[insufficient_data]" in text
    assert "fix:" in text


def test_where_much_is_unexplained_the_headline_does_not_say_that_nothing_else_matters(tmp_path):
    """Kernels that were launched in time begin late for an unknown reason: the share of the device is small."""
    text = text_of(
        tmp_path,
        """
        step    aaaaaaaaaabbbbbbbbbbcccccccccc
        op      #.........#.........#.........
        launch  ||||......||||......||||......
        gpu     .....a.bc......d.ef......g.hi.
    """,
    )
    said = " ".join(text.split())
    assert "No problem costs" not in said
    assert "of the time." in said.partition("Nothing recorded explains")[2][:20]


def test_a_finding_names_the_line_and_its_call_chain(tmp_path):
    whole = drawn(
        """
        step    aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd
        save    ...####......####......####......####...
        op      ###....###.......###.......###.......###
        gpu     .a.....b..c......d..e......f..g......h..
    """,
        1000,
    )
    row = {"ph": "X", "cat": "python_function", "pid": 100, "tid": 100}
    whole["traceEvents"] += [
        row | {"name": "train.py(80): main", "ts": 0, "dur": 40_000},
        row | {"name": "train.py(43): keep", "ts": 2_900, "dur": 36_000},
    ]
    path = tmp_path / "run.pt.trace.json"
    path.write_text(json.dumps(whole))
    text = render(diagnose(str(path)))
    assert "   in train.py:43 keep: 100 % of this cost" in text
    assert "       train.py: main > train.py(43): keep > torch/serialization.py(943): save" in text
    assert text.splitlines()[3].startswith("Interruptions of the training take")
    assert "Most of it is in keep (train.py:43)." in " ".join(text.split())


def test_a_step_time_says_whether_a_profiler_ran():
    step = pb.Spread(mean=5e6, median=5e6, p10=5e6, p90=5e6)
    said = {
        basis: render(pb.Report(evidence_source=source, window=pb.Window(steps=6, basis=basis, step_ns=step)))
        for basis, source in (("profiler_step", "trace"), ("step_clock", "telemetry"))
    }
    assert "6 profiled steps of 5.00 ms" in said["profiler_step"]
    assert "6 steps of 5.00 ms" in said["step_clock"]
    assert "without a profiler" in said["step_clock"]
