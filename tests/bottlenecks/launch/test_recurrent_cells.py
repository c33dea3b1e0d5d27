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


def test_the_backward_pass_of_a_cell_is_that_of_its_operators(recorded):
    """The node of another operator, with another sequence number, is not among them."""
    forward = [(name, 10 * at + 1) for at in range(10) for name in ("aten::select", "aten::linear", "aten::tanh")]
    node = "autograd::engine::evaluate_function: TanhBackward0"
    backward = [(node, 10 * at + 1) for at in reversed(range(10))]
    trace = load(recorded([*forward, "aten::sum", *backward, (node, 500)]))
    spans = recurrent_cells(Recording(trace, find_steps(trace)))
    times = [(count * OPERATOR_US - 10) * 1_000 for count in (30, 10)]
    assert (spans.ends - spans.starts)[:2].tolist() == pytest.approx(times, abs=1)


OWN = ["aten::select", "aten::linear", "aten::linear", "aten::add", "aten::tanh"]


@pytest.mark.parametrize(
    ("operators", "found"),
    [
        (CELL * 40, True),
        (OWN * 20, True),
        (["aten::select", "aten::addmm", "aten::sigmoid", "aten::mul", "aten::add"] * 20, True),
        (CELL * 3 + ["aten::linear"] * 70, False),
        (["aten::lstm"] * 70, False),
        (OWN[1:] * 20, False),
        (["aten::select", "aten::linear", "aten::relu"] * 30, False),
        (["aten::select", "aten::unsqueeze", "aten::linear", "aten::tanh"] * 25, False),
        (OWN * 4 + ["aten::linear"] * 80, False),
    ],
    ids=[
        "a loop",
        "own cell",
        "own gates",
        "a few cells",
        "a layer",
        "deep layers",
        "no gate",
        "batches of one",
        "few",
    ],
)
def test_only_a_loop_over_many_cells_is_a_cause(recorded, operators, found):
    report = diagnose(recorded(operators))
    causes = {each.cause: each for each in report.findings}
    assert ("recurrent_cells" in causes) == found
    if found:
        assert "torch.nn.LSTM(" in causes["recurrent_cells"].fix.code
        assert causes["recurrent_cells"].speedup.expected > 1.5
