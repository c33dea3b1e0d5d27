"""Cells that a loop calls are a cause; a recurrent layer is not."""

import pytest

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.bottlenecks.launch.recurrent_cells import cells_per_step, idle_in_cells, recurrent_cells
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load
from tests.bottlenecks.launch.conftest import KERNEL_US, OPERATOR_US, STEP_US

CELL = ["aten::select", "aten::lstm_cell"]


def test_a_loop_over_cells_is_one_span_with_what_lies_between_them(recorded):
    trace = load(recorded(["aten::linear", *CELL * 30, "aten::linear"]))
    recording = Recording(trace, find_steps(trace))
    assert cells_per_step(recording).value == 30
    assert len(recurrent_cells(recording)) == len(recording.steps)
    idle = 59 * (OPERATOR_US - KERNEL_US) / STEP_US
    assert idle_in_cells(recording).value == pytest.approx(idle, rel=0.05)


@pytest.mark.parametrize(
    ("operators", "found"),
    [(CELL * 40, True), (CELL * 3 + ["aten::linear"] * 70, False), (["aten::lstm"] * 70, False)],
    ids=["a loop", "a few cells", "a layer"],
)
def test_only_a_loop_over_many_cells_is_a_cause(recorded, operators, found):
    report = diagnose(recorded(operators))
    causes = {each.cause: each for each in report.findings}
    assert ("recurrent_cells" in causes) == found
    if found:
        assert "torch.nn.LSTM(" in causes["recurrent_cells"].fix.code
        assert causes["recurrent_cells"].speedup.expected > 1.5
