"""Which line of a function a place names, from the lines of calls and from samples, in a drawn recording."""

import json

import numpy as np
import pytest
from helpers.call_lines import packed

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.measures.user_code.places import HostTimes, places_of
from tb_bottleneck.trace.call_lines import KEY
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

BASE = 1_790_000_000_000_000_000
LISTED, CALLED = 12, 13
# Of the 1,000 us of f, a comprehension takes 100 to 700, of which calls take 200 to 300; another call takes 800 to 900.
FRAMES = [
    ("train.py(10): f", 0, 1_000, 0),
    ("train.py(12): <listcomp>", 100, 600, LISTED),
    ("<built-in method softmax of Tensor object>", 200, 100, CALLED),
    ("<built-in function sleep>", 800, 100, 20),
]


def place(tmp_path, samples):
    """Returns the place of each microsecond of f."""
    row = {"ph": "X", "pid": 1, "tid": 1}
    events = [
        row | {"cat": "user_annotation", "name": f"ProfilerStep#{n}", "ts": 1_000 * n, "dur": 999} for n in (0, 1)
    ]
    for name, at, length, _ in FRAMES:
        events.append(row | {"cat": "python_function", "name": name, "ts": at + 1, "dur": length - 2})
    events.append(row | {"cat": "cpu_op", "name": "aten::mm", "ts": 1_500, "dur": 9})
    starts, lines = zip(*((BASE + (at + 1) * 1_000, line) for _, at, _, line in FRAMES if line), strict=True)
    told = {"version": 1, "calls": len(starts), "complete": True, "first": starts[0], "samples": samples}
    told |= {"starts": packed(np.diff([starts[0], *starts]), "<u8"), "lines": packed(lines, "<u4")}
    path = tmp_path / "t.pt.trace.json"
    path.write_text(json.dumps({"baseTimeNanoseconds": BASE, "with_stack": 1, "traceEvents": events, KEY: told}))
    trace = load(str(path))
    times = np.arange(10, 990) * 1_000
    threads = np.full(len(times), trace.events.thread[0])
    recording = Recording(trace, find_steps(trace))
    (found,) = places_of(recording, HostTimes(threads, times, np.ones(len(times))))
    return found


def test_a_comprehension_without_samples_is_the_line_in_which_it_begins(tmp_path):
    found = place(tmp_path, [])
    assert (found.line, found.exact) == (LISTED, True)
    assert found.share == pytest.approx(0.5, abs=0.03)
    others = {other.line: other.share for other in found.other_lines}
    assert others == {CALLED: pytest.approx(0.1, abs=0.01), 20: pytest.approx(0.1, abs=0.01)}


def test_what_runs_in_a_comprehension_has_the_sampled_line(tmp_path):
    found = place(tmp_path, [["train.py", 12, "<listcomp>", CALLED, 60], ["train.py", 10, "f", 21, 30]])
    assert (found.line, found.exact) == (CALLED, True)
    assert {other.line for other in found.other_lines} <= {20, 21}


def test_samples_divide_what_calls_do_not_explain(tmp_path):
    """Half of the samples are in a line whose call takes a tenth: the rest is what the function does itself."""
    samples = [["train.py", 10, "f", LISTED, 50], ["train.py", 10, "f", 21, 25], ["train.py", 10, "f", 20, 25]]
    found = place(tmp_path, samples)
    lines = {found.line: found.share} | {other.line: other.share for other in found.other_lines}
    assert lines[20] > 0.1
    assert lines[21] > 0.1
    assert sum(lines.values()) <= 1.0 + 1e-9
