"""Measures what the profiler costs in this process: Python bytecode, calls of functions, and operators.

It takes about 10 ms, once per process, before the first capture: each figure is the least of a few rounds, without a
profiler and in two small profiles, with stacks and without. The recording then states the figures, and the analysis
takes that time out (attribution/profiler_time).
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tb_bottleneck.monitor.torch_internals import small_profile

ROUNDS = 5
LOOPS, CALLS, OPERATORS = 400, 60, 20
"""Repetitions in a round. Recorded rows cost memory and time at the end of a profile."""


def profiler_costs() -> dict[str, float]:
    """Returns the fact `profiler_costs`: the slowdown of bytecode, and ns per call of each kind and per operator.

    Raises the errors of torch if it cannot profile.
    """
    import torch

    number = torch.zeros(1)
    plain = _times(number)
    with _profile(stacks=True):
        stacks = _times(number)
    with _profile(stacks=False):
        shapes = _times(number)
    slowdown = max(stacks["bytecode"] / plain["bytecode"], 1.0)

    def added(name: str) -> float:
        """Returns the time that recording adds to the call in ns; the loop around it is bytecode."""
        return max(stacks[name] - plain[name] * slowdown, 1.0)

    c_call = added("c_call")
    return {
        "python_slowdown": slowdown,
        "python_call_ns": added("python_call"),
        "c_call_ns": c_call,
        "operator_ns": max(stacks["operator"] - plain["operator"] - c_call, 1.0),
        "operator_without_stacks_ns": max(shapes["operator"] - plain["operator"], 1.0),
    }


@contextmanager
def _profile(stacks: bool) -> Iterator[None]:
    begin, end = small_profile(stacks)
    begin()
    try:
        yield
    finally:
        end()


def _times(number: Any) -> dict[str, float]:
    """Returns the ns of one repetition of each kind of work."""
    return {
        "bytecode": _least(_bytecode, LOOPS),
        "python_call": _least(_python_calls, CALLS),
        "c_call": _least(_c_calls, CALLS),
        "operator": _least(lambda times: _operators(number, times), OPERATORS),
    }


def _least(work: Callable[[int], None], times: int) -> float:
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter_ns()
        work(times)
        taken.append(time.perf_counter_ns() - began)
    return min(taken) / times


class _Point:
    def __init__(self) -> None:
        self.x, self.y = 1, 2


def _bytecode(times: int) -> None:
    """A mixture of what loops in Python do, without calls: lists, dictionaries, attributes, numbers, conditions."""
    table, seen, point, mean, best = [[0] * 8 for _ in range(8)], {0: 0}, _Point(), 0.5, 0
    for i in range(times):
        row = table[i & 7]
        row[i & 3] = row[i & 3] + 1
        seen[i & 15] = best
        point.x = point.y + i
        mean = mean * 0.5 + 1.0
        if row[0] > point.x or mean < 0.0:
            best -= 1
        best = best + point.y


def _nothing() -> None:
    pass


def _python_calls(times: int) -> None:
    for _ in range(times):
        _nothing()


def _c_calls(times: int) -> None:
    nothing = ()
    for _ in range(times):
        len(nothing)


def _operators(number: Any, times: int) -> None:
    for _ in range(times):
        number.add_(1)
