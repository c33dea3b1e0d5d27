"""The monitor's traces name lines that make no calls, from samples of the recorded steps."""

import subprocess
import sys
from pathlib import Path

import pytest

from tb_bottleneck.diagnosis.trace import diagnose

pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
import torch
from tb_bottleneck import Monitor

def count(rows):
    table = [0] * 64
    for row in range(rows):
        table[row & 63] = (table[row & 63] * 3 + row) % 1023 + (row * row) % 7
    return table

model = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with Monitor(sys.argv[1]):
    for _ in range(60):
        loss = model(torch.randn(8, 16)).sum() + 0 * count(60_000)[0]
        loss.backward()
        optimizer.step()
"""


def test_a_loop_in_python_has_its_line(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(tmp_path / "logdir")]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)})
    (trace,) = (tmp_path / "logdir").rglob("*.pt.trace.json.gz")
    (finding,) = (it for it in diagnose(str(trace)).findings if it.cause == "host_python")
    place = next(it for it in finding.where if it.function == "count")
    hot = next(number for number, line in enumerate(SCRIPT.splitlines(), 1) if "table[row & 63] =" in line)
    assert (place.line if place.exact else place.hottest_line) in (hot, hot - 1)
