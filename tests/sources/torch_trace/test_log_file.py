"""Of the logs beside a trace, the one of its process is used."""

import os
import subprocess
import sys

import pytest
from helpers.torch_trace import compilation, log

from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.report.cache.report_store import identity_of
from tb_bottleneck.sources.file_system import LOCAL
from tb_bottleneck.sources.torch_trace.log_file import log_beside, names_beside


@pytest.fixture
def folder(tmp_path):
    def add(name, text):
        (tmp_path / f"dedicated_log_torch_trace_{name}.log").write_text(text)

    add("old", log(compilation("1/1", 1_000), process=7))
    add("new", log(compilation("1/2", 5_000), process=7))
    add("later", log(compilation("1/3", 9_000), process=7))
    add("other", log(compilation("1/4", 5_500), process=8))
    add("rank_2_a", log(compilation("2/1", 3_000), process=9))
    add("rank_3_a", log(compilation("3/1", 3_000), process=9))
    add("late", log(compilation("4/1", 3_000), process=10, rank=4))
    (tmp_path / "dedicated_log_torch_trace_pipe.log").symlink_to("/dev/zero")
    os.mkdir(tmp_path / "dedicated_log_torch_trace_folder.log")
    return str(tmp_path / "a.pt.trace.json")


@pytest.mark.parametrize(
    ("process", "rank", "end_us", "number"),
    [
        (7, None, 6_000, "1/2"),
        (7, 0, 6_000, "1/2"),  # the logs were begun before the process had a rank
        (7, None, 2_000, "1/1"),
        (7, None, 500, None),
        (7, None, None, "1/3"),
        (8, None, 6_000, "1/4"),
        (9, 2, 6_000, "2/1"),
        (9, 3, 6_000, "3/1"),
        (10, 4, 6_000, "4/1"),
        (10, 5, 6_000, None),
        (11, None, 6_000, None),
    ],
)
def test_the_last_log_of_the_process_and_the_rank_before_the_end(folder, process, rank, end_us, number):
    found = log_beside(folder, {process}, rank, end_us).get("compilations", [])
    assert [entry[0] for entry in found] == ([number] if number else [])


def test_another_log_makes_another_identity(folder, tmp_path):
    open(folder, "w").close()
    before = identity_of(folder)
    (tmp_path / "dedicated_log_torch_trace_old.log").write_text("longer " * 1_000)
    assert identity_of(folder) == before
    (tmp_path / "dedicated_log_torch_trace_more.log").write_text("")
    assert identity_of(folder) != before


def test_an_unchanged_directory_is_listed_once(folder, tmp_path, monkeypatch):
    os.utime(tmp_path, (1, 1))
    names = names_beside(folder)
    monkeypatch.setattr(LOCAL, "files_in", lambda *_: [])
    assert names_beside(folder) == names != ""
    os.utime(tmp_path)
    assert names_beside(folder) == ""


PROGRAM = """
import torch
from torch.profiler import profile, schedule, tensorboard_trace_handler

def forward(x, scale):
    x = x + 1
    print(end="")
    x = x * scale
    if x.sum() > 0:
        x = x + 1
    return x.sum()

model = torch.compile(forward, backend="eager")
with profile(schedule=schedule(wait=2, warmup=1, active=3), on_trace_ready=tensorboard_trace_handler("runs")) as p:
    for step in range(6):
        model(torch.randn(8, 8), 2.0 if step < 4 else 3.0)
        p.step()
"""


def test_a_real_training_has_the_reasons_of_its_breaks_and_compilations(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    environment = os.environ | {"TORCH_TRACE": "runs"}
    subprocess.run([sys.executable, "train.py"], cwd=tmp_path, env=environment, check=True)
    (trace,) = (tmp_path / "runs").glob("*.pt.trace.json")
    found = diagnose(str(trace)).compilation
    (function,) = found.functions
    assert (function.function, function.file, function.line) == ("forward", "train.py", 7)
    assert list(function.reasons) == ["scale == 2.0, in train.py:8: x = x * scale"]
    assert {(row.function, row.file, row.line) for row in found.breaks} == {
        ("forward", "train.py", 7),
        ("forward", "train.py", 9),
    }
    reasons = " ".join(row.reason for row in found.breaks)
    assert "builtin operator `print`" in reasons
    assert "data-dependent branching" in reasons.lower()
    assert found.missing == ""
