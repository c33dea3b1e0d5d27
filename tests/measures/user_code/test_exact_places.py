"""With the lines of calls, a place is the line that runs; without them, the function."""

import subprocess
import sys
from pathlib import Path

import pytest

from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.drilldown.inspected_trace import load_inspected
from tb_bottleneck.drilldown.tree.selection import Selection, selected_tree

pytest.importorskip("torch")
ROOT = Path(__file__).parents[3]
SCRIPT = """
import sys, time
import torch
from tb_bottleneck import trace_handler
from torch.profiler import profile, schedule, tensorboard_trace_handler

def prepare(rows):
    batch = torch.randn(rows, 64)
    time.sleep(0.004)
    time.sleep(0.0016)
    return batch

model = torch.nn.Linear(64, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
handler = {"exact": trace_handler, "torch": tensorboard_trace_handler}[sys.argv[1]](sys.argv[2])
steps = schedule(skip_first=2, wait=0, warmup=1, active=4, repeat=1)
with profile(schedule=steps, on_trace_ready=handler, with_stack=True, profile_memory=True) as profiler:
    for _ in range(8):
        loss = model(prepare(256)).sum()
        loss.backward()
        optimizer.step()
        time.sleep(0.002)
        profiler.step()
"""


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(SCRIPT.splitlines(), 1) if text in line)


@pytest.fixture(scope="module", params=["exact", "torch"])
def recorded(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    script = folder / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), request.param, str(folder / "logdir")]
    subprocess.run(command, check=True, capture_output=True, cwd=folder, env={"PYTHONPATH": str(ROOT)})
    (path,) = (folder / "logdir").iterdir()
    return str(path), request.param == "exact"


def test_findings_name_the_line_that_runs(recorded):
    path, exact = recorded
    (finding,) = (it for it in diagnose(path).findings if it.cause == "host_python")
    places = {place.function: (place.line, place.exact) for place in finding.where}
    if exact:
        assert places["prepare"] == (line_of("time.sleep(0.004)"), True)
        assert places["<module>"] == (line_of("time.sleep(0.002)"), True)
        (prepare,) = (place for place in finding.where if place.function == "prepare")
        assert [other.line for other in prepare.other_lines] == [line_of("time.sleep(0.0016)")]
        assert 0.1 < prepare.other_lines[0].share / prepare.share < 0.8
    else:
        assert places["prepare"] == (line_of("def prepare"), False)
        assert places["<module>"] == (0, False)


def test_memory_names_the_line_that_allocates(recorded):
    path, exact = recorded
    lines = {site.line for site in diagnose(path).memory.sites if site.function == "prepare"}
    assert lines == {line_of("torch.randn") if exact else line_of("def prepare")}


def test_the_tree_by_line_has_a_row_for_each_line(recorded):
    path, exact = recorded
    tree = selected_tree(load_inspected(path), Selection("line"))
    rows = set(tree.name)
    assert (f"script.py:{line_of('loss.backward()')}" in rows) == exact
