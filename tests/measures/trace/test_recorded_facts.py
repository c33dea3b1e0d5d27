"""Facts of the training process that findings cite: recorded words and switches only."""

import pytest
from helpers.draw import drawn_trace

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.measures.trace.kernels import cores, torch_threads
from tb_bottleneck.measures.trace.recorded_facts import (
    loader_pins,
    on_windows,
    product_library,
    worker_start_method,
    workers_persist,
)
from tb_bottleneck.trace.steps import find_steps

DRAWING = """
    step    aaaaaaaaaabbbbbbbbbb
    gpu     .aaa.bbb...aaa.bbb..
"""


def recorded(**context):
    trace = drawn_trace(DRAWING, tb_bottleneck={"context": context})
    return Recording(trace, find_steps(trace))


def test_recorded_facts_are_cited_as_they_are():
    recording = recorded(
        os="Windows", worker_start="spawn", persistent_workers=False, pin_memory=True, torch_blas="mkl"
    )
    measures = (on_windows, worker_start_method, workers_persist, loader_pins, product_library)
    assert [measure(recording).text for measure in measures] == ["Windows", "spawn", "False", "True", "mkl"]


def test_another_operating_system_is_not_mentioned():
    assert isinstance(on_windows(recorded(os="Linux")), Missing)


@pytest.mark.parametrize("untrusted", [None, 7, ["spawn"], "<b>spawn</b>", "s" * 41, ""])
def test_other_values_are_not_shown(untrusted):
    recording = recorded(worker_start=untrusted, persistent_workers=untrusted)
    assert isinstance(worker_start_method(recording), Missing)
    assert isinstance(workers_persist(recording), Missing)


@pytest.mark.parametrize("wrong", [10**400, -1, 0, True, "many", None, [2]], ids=repr)
def test_numbers_of_cores_and_threads_are_positive_and_finite(wrong):
    recording = recorded(cores=wrong, torch_threads=2)
    assert isinstance(cores(recording), Missing)
    assert torch_threads(recording).value == 2
