"""One long pause in a recording without steps is a start-up, unless something that recurs explains it."""

import pytest
from helpers.draw import drawn_trace

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.quality.degradations import warmup_defect
from tb_bottleneck.trace.steps import find_steps

ONE_PAUSE = """
    op      ##########..........................########
    gpu     .aabbccddee.........................ffgghhii
"""


@pytest.mark.parametrize(
    ("row", "steady"),
    [
        ("", False),
        ("    loader  ...........#########################.......\n", True),
        ("    save    ...........#########################.......\n", True),
    ],
)
def test_a_single_pause_is_a_start_unless_it_is_a_wait_for_data_or_a_checkpoint(row, steady):
    trace = drawn_trace(ONE_PAUSE + row, 1000)
    steps = find_steps(trace)
    assert steps.basis == "whole"
    defect = warmup_defect(Recording(trace, steps))
    assert (defect is None) is steady
    assert steady or defect.code == "warmup"


def test_in_a_recording_with_steps_a_pause_is_no_start():
    trace = drawn_trace(ONE_PAUSE + "    step    aaaaaaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbb\n", 1000)
    assert warmup_defect(Recording(trace, find_steps(trace))) is None
