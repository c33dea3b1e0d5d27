"""The lines in a trace are read as they were written, and nothing else is believed."""

import base64
import json

import numpy as np
import pytest
from helpers.call_lines import packed

from tb_bottleneck.trace.call_lines import KEY, read_call_lines
from tb_bottleneck.trace.trace import Trace, load

BASE = 1_790_000_000_000_000_000
STARTS = [1_000, 5_000, 9_500]


def key(**other):
    differences = np.diff([STARTS[0], *STARTS])
    content = {"version": 1, "calls": 3, "complete": True, "first": BASE + STARTS[0]}
    return {**content, "starts": packed(differences, "<u8"), "lines": packed([7, 9, 11], "<u4"), **other}


def trace_with(tmp_path, value) -> Trace:
    events = [
        {"ph": "X", "cat": "python_function", "name": f"f{start}", "pid": 1, "tid": 1, "ts": start / 1000, "dur": 0.5}
        for start in (*STARTS, 12_000)
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"baseTimeNanoseconds": BASE, "traceEvents": events, KEY: value}))
    return load(str(path))


def test_lines_belong_to_the_calls_that_begin_at_their_times(tmp_path):
    lines = trace_with(tmp_path, key()).call_lines
    assert lines.complete
    assert lines.of(np.array([0, 1, 2, 3, -1])).tolist() == [7, 9, 11, 0, 0]


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "text",
        {},
        key(version=2),
        key(calls=2),
        key(calls=4),
        key(calls=True),
        key(calls=10**9),
        key(calls=-1),
        key(first="1"),
        key(first=-5),
        key(first=1 << 70),
        key(starts="no base64!"),
        key(starts=base64.b64encode(b"no zlib").decode()),
        key(starts=None),
        key(starts=packed([0, 1 << 63, 0], "<u8")),
        key(lines=packed([1, 2], "<u4")),
        key(lines=packed([1, 2, 1 << 31], "<u4")),
        key(lines=packed([0] * 1_000_000, "<u4")),
    ],
)
def test_another_form_has_no_lines(tmp_path, value):
    assert len(trace_with(tmp_path, value).call_lines) == 0


def test_times_of_other_events_have_no_lines(tmp_path):
    events = trace_with(tmp_path, key()).events
    assert len(read_call_lines(key(first=BASE + 1_001), BASE, events)) == 0


def test_samples_belong_to_the_function_that_begins_at_its_line(tmp_path):
    rows = [
        ["a.py", 3, "step", 5, 7],
        ["a.py", 3, "step", 6, 2],
        ["a.py", 40, "step", 41, 9],
        ["a.py", 1, "<module>", 50, 1],
    ]
    odd = [
        ["a.py", 3, "step", 5],
        ["a.py", "3", "step", 5, 7],
        None,
        ["a.py", 3, "step", -5, 7],
        ["a.py", 3, "step", 5, True],
    ]
    lines = trace_with(tmp_path, key(samples=[*odd, *rows])).call_lines
    assert lines.samples_of("a.py", "step", 3) == {5: 7, 6: 2}
    assert lines.samples_of("a.py", "step", 0) == {5: 7, 6: 2, 41: 9}
    assert lines.samples_of("b.py", "step", 3) == {}
    assert not trace_with(tmp_path, key(samples={"a": 1})).call_lines.samples


def test_files_have_size_and_time(tmp_path):
    files = {"a.py": [5, 7], "b.py": [5], "c.py": "5", "d.py": [-1, 7], "e.py": [True, 7]}
    assert trace_with(tmp_path, key(files=files)).call_lines.files == {"a.py": (5, 7)}
