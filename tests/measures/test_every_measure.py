"""Every measure of every kind of recording is a finite number, a text, or a reason why it is missing."""

import inspect
import math

import pytest
from helpers.draw import drawn_trace
from helpers.modules import modules_of
from simulate.examine import measured
from simulate.kineto import DIALECTS
from simulate.kineto import Recording as Written
from simulate.problems import HARD_NEGATIVES, PROBLEMS
from simulate.workload import random_workload

from tb_bottleneck import bottlenecks
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.measures import trace
from tb_bottleneck.trace.steps import find_steps

UNITS = {"ns", "share", "count", "bytes", "bytes_per_s", "text"}


def all_measures():
    for module in modules_of(trace, bottlenecks):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            signature = inspect.signature(function)
            takes = [parameter.annotation for parameter in signature.parameters.values()]
            measures_something = takes == [Recording] and signature.return_annotation == Measure | Missing
            if measures_something and function.__module__ == module.__name__ and not name.startswith("_"):
                yield function


ALL = list(all_measures())

DRAWN = {
    "on the CPU": """
        step    aaaaaaaaaabbbbbbbbbbcccccccccc
        loader  ###.......###.......###.......
        op      ...#.#.#.#...#.#.#.#...#.#.#.#
    """,
    "without steps": """
        op      ##........##........##........
        gpu     ..aabbcc....aabbcc....aabbcc..
    """,
    "copies alone": """
        step    aaaaaaaaaabbbbbbbbbbcccccccccc
        h2d     ####......####......####......
        d2h     ......##........##........##..
    """,
    "collectives alone": """
        step    aaaaaaaaaabbbbbbbbbbcccccccccc
        nccl    ####......####......####......
    """,
    "one step": """
        step    aaaaaaaaaa
        op      ##........
        gpu     ..aabbcc..
    """,
}


def sound(function, recording):
    found = function(recording)
    if isinstance(found, Missing):
        assert found.because
        assert not found.because.endswith(".")
        return
    assert isinstance(found, Measure)
    assert found.unit in UNITS
    assert math.isfinite(found.value)
    assert found.value >= 0
    assert found.count >= 0
    assert (found.begin is None) == (found.end is None)
    assert found.begin is None or found.begin <= found.end
    assert bool(found.text) == (found.unit == "text")
    if found.unit == "share":
        assert found.value <= 1.000001 or found.per in ("roof", "core")


def test_there_are_many():
    assert len(ALL) > 60


@pytest.mark.parametrize("name", DRAWN)
def test_on_small_recordings(name):
    trace = drawn_trace(DRAWN[name], 1000)
    for function in ALL:
        sound(function, Recording(trace, find_steps(trace)))


@pytest.mark.parametrize("name", PROBLEMS)
def test_on_trainings_with_problems(name):
    recording = measured(PROBLEMS[name].make(5))
    for function in ALL:
        sound(function, recording)


@pytest.mark.parametrize("seed", range(10))
def test_on_any_training_in_any_dialect(seed):
    workload = random_workload(seed + 9_000)
    recording = measured(workload, Written(DIALECTS[seed % len(DIALECTS)], stacks=workload.stacks, noise=seed % 2 == 0))
    for function in ALL:
        sound(function, recording)


def test_on_a_captured_graph_and_on_two_devices():
    for workload in (HARD_NEGATIVES["a captured graph"](1), random_workload(3).but(devices=2, graph=True)):
        recording = measured(workload)
        for function in ALL:
            sound(function, recording)
