"""The user's own lines among Python frames."""

import json

import numpy as np
import pytest
from helpers.draw import drawn
from simulate.examine import measured
from simulate.workload import healthy

from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.intervals import EMPTY, Spans
from tb_bottleneck.measures.trace.python_frames import frames_of, lines_in


def test_times_belong_to_the_innermost_of_the_users_lines():
    recording = measured(healthy(1).but(stacks=True, steps=4))
    thread, steps = recording.host.main_thread, recording.steps
    middle = (steps.host[:-1] + steps.host[1:]) // 2
    rows = frames_of(recording, thread).at(np.append(middle, 0))
    names = [recording.trace.names[recording.trace.events.name[row]] for row in rows[:-1].tolist()]
    assert set(names) == {"train.py(42): train_step"}
    assert rows[-1] == -1  # before the recording
    inside = Spans(steps.host[:1] + 10_000, steps.host[:1] + 20_000)
    assert lines_in(recording, thread, inside) == [("train.py(42): train_step", 1.0)]
    assert lines_in(recording, thread, EMPTY) == []


def test_without_frames_no_line_is_named():
    recording = measured(healthy(1).but(stacks=False))
    frames = frames_of(recording, recording.host.main_thread)
    assert frames.at(np.array([0, recording.steps.begin])).tolist() == [-1, -1]


PAUSED = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd
    op      ###.......###.......###.......###.......
    gpu     .aa.......b.c.......d.e.......f.g......h
"""


@pytest.mark.parametrize("names", [["publish metrics"], ["publish metrics", "ProfilerStep#9"]])
def test_without_frames_the_programs_own_blocks_are_named(tmp_path, names):
    """The device waits for 7 ms in each step, and the program has marked 6 of them."""
    whole, path = drawn(PAUSED, 1000), tmp_path / "marked.pt.trace.json"
    row = {"ph": "X", "cat": "user_annotation", "pid": 100, "tid": 100, "dur": 6000}
    whole["traceEvents"] += [row | {"name": name, "ts": 3500 + 10_000 * n} for name in names for n in range(4)]
    path.write_text(json.dumps(whole))
    report = diagnose(str(path))
    assert report.verdict.regime == "host"
    result = next(row.text for row in report.findings[0].evidence if row.label == "Code that runs at that time")
    assert result.startswith("publish metrics (")
    assert "ProfilerStep" not in result
