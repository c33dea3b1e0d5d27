"""Tensor cores, SM efficiency and occupancy, as torch-tb-profiler defines them; tokens and goodput of a trace."""

import pytest
from helpers.draw import drawn_trace
from helpers.drawn_gpt import Gpt

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.measures.efficiency.trace_figures import goodput_of_trace, tokens_per_step
from tb_bottleneck.measures.efficiency.utilisation import device_use
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

PRODUCTS_OF_A_STEP = 4 * 5 + 1  # of the forward pass, with attention
KERNEL_US = 40


def recording_of(trace):
    steps = find_steps(trace)
    assert steps is not None
    return Recording(trace, steps)


@pytest.fixture(scope="module")
def inference(tmp_path_factory):
    return recording_of(load(Gpt(trained=False).write(tmp_path_factory.mktemp("gpt"))))


def test_kernels_of_half_a_wave_for_a_part_of_the_time(inference):
    """54 blocks on 108 multiprocessors, each kernel with an occupancy of 25 %."""
    found = device_use(inference)
    busy = PRODUCTS_OF_A_STEP * KERNEL_US * len(inference.steps) * 1000 / inference.account.window
    assert found["sm_efficiency"].value == pytest.approx(0.5 * busy)
    assert found["occupancy"].value == pytest.approx(0.25)
    assert found["tensor_share"].value == 1.0


def test_the_share_of_tensor_cores_is_of_time():
    trace = drawn_trace(
        """
        step    aaaaaaaaaabbbbbbbbbb
        op      ##........##........
        gpu     .aaaa......aaaa.....
        stream  .....aaaa......aaaa.
        """
    )
    found = device_use(recording_of(trace))
    assert found["tensor_share"].value == pytest.approx(0.5)
    assert found["occupancy"].text == "no_occupancy"


def test_a_run_on_the_cpu_has_none_of_them():
    trace = drawn_trace("step aaaaabbbbb\nop   ####.####.")
    assert {figure.text for figure in device_use(recording_of(trace)).values()} == {"on_cpu"}


def test_tokens_are_what_the_first_embedding_looks_up(inference):
    """Positions are looked up in a table of another size."""
    assert tokens_per_step(inference).value == Gpt().tokens


def test_a_model_without_attention_has_no_tokens():
    assert tokens_per_step(recording_of(drawn_trace("step aaaaabbbbb\nop   ####.####."))).text == "no_attention"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [("aaaaabbbbbcccccddddd", 1.0), ("aaaaabbbbbcccccdddddddddd", 0.8), ("aaaaabbbbb", None)],
)
def test_goodput_is_the_share_of_median_steps(steps, expected):
    found = goodput_of_trace(recording_of(drawn_trace(f"step {steps}\nop   {'#' * (len(steps) - 1)}.")))
    assert found.value == (None if expected is None else pytest.approx(expected))
