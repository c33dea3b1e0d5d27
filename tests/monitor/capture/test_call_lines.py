"""The lines of calls are those of the program, bounded, and never an error of the training."""

import io
import json
import sys
import time
from types import SimpleNamespace

import pytest

from tb_bottleneck.monitor.capture import call_lines as module
from tb_bottleneck.monitor.capture.call_lines import KEY, call_lines, copy_with_keys
from tb_bottleneck.monitor.capture.trace_handler import trace_handler
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.trace import load

torch = pytest.importorskip("torch")


def _callee(x):
    return x + 1


def _program(calls: int) -> None:
    for _ in range(calls):
        _callee(1)
        time.sleep(0)


FIRST = _program.__code__.co_firstlineno
LINES = {"_callee": FIRST + 2, "sleep": FIRST + 3}


def _profiled(calls: int, **options):
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], with_stack=True, **options) as profiler:
        _program(calls)
    return profiler


def _read(trace) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for row, line in zip(trace.call_lines.row.tolist(), trace.call_lines.line.tolist(), strict=True):
        name = trace.names[trace.events.name[row]]
        for key in LINES:
            if key in name:
                found.setdefault(key, set()).add(line)
    return found


@pytest.mark.parametrize("use_gzip", [False, True])
def test_each_call_of_the_program_has_its_line(tmp_path, use_gzip):
    trace_handler(tmp_path, "worker", use_gzip)(_profiled(20))
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("worker.")
    assert path.name.endswith(".pt.trace.json.gz" if use_gzip else ".pt.trace.json")
    trace = load(str(path))
    assert _read(trace) == {name: {line} for name, line in LINES.items()}
    deeper = [row for row in trace.rows(Kind.PYTHON).tolist() if "typing.py" in trace.names[trace.events.name[row]]]
    assert not set(deeper) & set(trace.call_lines.row.tolist()), "only calls of the program"
    assert trace.header.context["torch_threads"], "the facts of the process are in the trace"


def test_the_walk_stops_at_its_deadline(monkeypatch):
    monkeypatch.setattr(module, "MAX_SECONDS", 0.0)
    text = call_lines(_profiled(1000))
    assert text is not None
    told = json.loads(text)
    assert 0 < told["calls"] < 2000
    assert told["complete"] is False


def test_the_text_is_bounded(monkeypatch):
    profiler = _profiled(1000)
    monkeypatch.setattr(module, "MAX_BYTES", 500)
    text = call_lines(profiler)
    assert text is not None
    assert len(text) <= 500
    assert json.loads(text)["complete"] is False


@pytest.mark.parametrize(
    "profiler", [None, SimpleNamespace(profiler=None), SimpleNamespace(profiler=SimpleNamespace())]
)
def test_a_profiler_without_the_tree_has_no_lines(profiler):
    assert call_lines(profiler) is None


@pytest.mark.parametrize(
    ("file", "own"),
    [
        ("train.py", True),
        ("project/model.py", True),
        ("/home/me/train.py", True),
        (r"C:\me\train.py", True),
        ("torch/nn/modules/linear.py", False),
        ("logging/__init__.py", False),
        ("/usr/lib/python3/site-packages/x/y.py", False),
        ("<frozen os>", False),
        ("<string>", False),
        ("", False),
    ],
)
def test_only_files_of_the_program_count(file, own):
    assert "torch" in sys.modules
    assert module.Programs()[file] == own


@pytest.mark.parametrize("text", ['{"a": 1}', '{"a": 1}\n', "{}", "", "no json", "[1]"])
def test_keys_are_added_to_an_object(text):
    target = io.BytesIO()
    copy_with_keys(io.BytesIO(text.encode()), target, {KEY: '{"b": 2}'})
    copied = target.getvalue().decode()
    if "}" in text and text != "{}":
        assert json.loads(copied) == {**json.loads(text), KEY: {"b": 2}}
    elif "}" not in text:
        assert copied == text


def test_a_handler_never_raises(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    trace_handler(tmp_path / "file" / "folder")(_profiled(1))
    assert "could not be written" in caplog.text
    trace_handler(tmp_path / "logdir")(None)
    assert list((tmp_path / "logdir").iterdir()) == []
