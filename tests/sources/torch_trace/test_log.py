"""A log of torch.compile is read as the monitor records it, with any content."""

import io

import pytest
from helpers.torch_trace import BREAK, GUARD, compilation, log

from tb_bottleneck.schema.compile_entries import MAX_COMPILATIONS
from tb_bottleneck.sources.torch_trace import log as module
from tb_bottleneck.sources.torch_trace.log import CompileLogFile, process_of


def read(text, until_us=float("inf")):
    return CompileLogFile(io.BytesIO(text.encode()), until_us)


def test_compilations_breaks_and_failures_are_like_those_of_the_monitor():
    failed = {"fail_type": "Unsupported", "fail_reason": "Unsupported graph break in loop\n  Explanation: no"}
    found = read(log(compilation(recompile_reason=GUARD), compilation("2/0", 2_000, **failed), rank=3))
    assert (found.rank, found.begin_us) == (3, 1_000)
    guard = "scale == 1.0 # x = self.b(x) * scale # net.py:9 in forward"
    assert found.fact["compilations"] == [
        ["1/1", "forward", "models/net.py", 6, 1_000, 50, guard],
        ["2/0", "forward", "models/net.py", 6, 2_000, 50, ""],
    ]
    reason = "Failed to trace builtin operator: Dynamo does not know how to trace builtin operator `print`"
    assert found.fact["breaks"] == [["models/net.py", 8, "forward", reason, 1]]
    assert found.fact["failures"] == [["models/net.py", 6, "forward", "in a loop: graph break in loop: no"]]


def test_what_is_compiled_after_the_trace_does_not_belong_to_it():
    text = log(compilation(), breaks=()) + log(compilation("1/2", 5_000), breaks=(BREAK, BREAK))
    assert [entry[0] for entry in read(text, until_us=4_000).fact["compilations"]] == ["1/1"]


def test_times_of_older_releases_are_in_seconds():
    old = {"start_time_us": None, "duration_us": None, "start_time": 2.5, "entire_frame_compile_time_s": 0.25}
    assert read(log(compilation(**old))).fact["compilations"][0][4:6] == [2_500_000, 250_000]


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/home/me/job/models/net.py", "models/net.py"),
        ("/opt/venv/lib/python3.11/site-packages/timm/layers/mlp.py", "timm/layers/mlp.py"),
        ("/secret/host-a/net.py", "net.py"),
        ("C:\\Users\\me\\net.py", "net.py"),
    ],
)
def test_paths_are_shown_without_folders_of_the_machine(path, shown):
    assert read(log(compilation(co_filename=path))).fact["compilations"][0][2] == shown


DAMAGED = {
    "no json": lambda text: text.replace('{"compilation_metrics": {', '{"compilation_metrics": {{'),
    "other types": lambda text: text.replace('"start_time_us": 1000', '"start_time_us": "soon"'),
    "a long line": lambda text: text.replace('"co_name": "', '"co_name": "' + "x" * module.MAX_LINE),
    "deep": lambda text: text.replace('{"compilation_metrics": ', '{"compilation_metrics": ' + "[" * 100_000),
    "no prefix": lambda text: text.replace("V1123", ""),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_record_is_left_out(damage):
    text = log(compilation(), breaks=())
    whole = text + log(compilation("9/0"))
    assert read(DAMAGED[damage](text)).fact == {}
    kept = read(DAMAGED[damage](text) + log(compilation("9/0"))).fact["compilations"]
    assert [entry[0] for entry in kept] == ["9/0"]
    assert len(read(whole).fact["compilations"]) == 2


def test_a_break_whose_text_ends_early():
    assert read(log(compilation(), breaks=("Graph break in user code at a.py:8",))).fact["breaks"][0][:2] == ["a.py", 8]
    assert read(log(compilation(), breaks=("", "nothing", "Graph break in user code at :8"))).fact["breaks"] == []


def test_memory_is_bounded(monkeypatch):
    many = [compilation(f"{number}/0") for number in range(2 * MAX_COMPILATIONS)]
    assert len(read(log(*many)).fact["compilations"]) == MAX_COMPILATIONS
    monkeypatch.setattr(module, "MAX_BYTES", 100)
    assert read(log(compilation())).fact == {}


def test_the_process_is_in_the_first_line():
    assert process_of(io.BytesIO(log(process=8982).encode())) == 8982
    assert process_of(io.BytesIO(b"anything else")) is None
