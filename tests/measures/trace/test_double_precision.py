"""Work in float64 is named on the CPU and on a GPU, by the recorded types, with the share of the time that it takes."""

import pytest
from helpers.typed_runs import ON_A_GPU, ON_THE_CPU, typed_file, typed_recording

from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.measures.trace.products import costliest_in_double, double_precision_share

BOTH = pytest.mark.parametrize("drawing", [ON_THE_CPU, ON_A_GPU], ids=["cpu", "gpu"])


@BOTH
def test_work_in_float64_leads_with_a_simulated_gain(tmp_path, drawing):
    first = diagnose(typed_file(tmp_path, drawing, "double")).findings[0]
    assert first.cause == "double_precision"
    assert first.speedup.basis == "replay"
    assert first.speedup.expected > 1.3


@BOTH
@pytest.mark.parametrize(("types", "share"), [(("double",), 0.8), (("double", "float"), 0.4), (("float",), 0.0)])
def test_its_share_is_of_the_window(tmp_path, drawing, types, share):
    assert double_precision_share(typed_recording(tmp_path, drawing, *types)).value == pytest.approx(share, abs=0.01)


@BOTH
def test_scalars_in_float64_do_not_count(tmp_path, drawing):
    """A Python number in an operation with a float32 tensor is recorded as double, and computes in float32."""
    assert double_precision_share(typed_recording(tmp_path, drawing, "double", dims=())).value == 0


def test_the_longest_operator_is_named(tmp_path):
    assert costliest_in_double(typed_recording(tmp_path, ON_THE_CPU, "double")).text == "aten::linear"
