"""Creates the monitor's profilers, detects profilers of the training, and measures how much a profiler slows this
process.

This is the only module that uses torch.profiler.
"""

import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tb_bottleneck.monitor.capture.trace_capture import Profiler, TraceCapture
from tb_bottleneck.monitor.hooks.hook_context import HookContext
from tb_bottleneck.monitor.torch_internals import is_profiling, profiler_methods, small_profile

ROUNDS = 5
LOOPS, CALLS, OPERATORS = 400, 60, 20
"""Repetitions in a round: of the loop without calls, of calls, and of operators. Calls and operators are repeated less,
because each recorded event costs memory, and time at the end of a profile."""


def profiler_costs() -> dict[str, float]:
    """Returns the fact `profiler_costs`: the factor by which a profiler with stacks slows bytecode, the ns that it adds
    to a call of Python, a call of C and an operator, and the ns that a profiler without stacks adds to an operator.

    The measurement takes about 10 ms, once per process, before the first trace. Each kind of work is timed without a
    profiler, in a small profile with stacks, and in one without stacks; the shortest of a few rounds counts. The trace
    contains the figures, and the analysis subtracts the added time (attribution/profiler_time).

    Raises the errors of torch if torch cannot profile.
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
        """Returns the time in ns that a profiler with stacks adds to one call of the kind `name`; at least 1.

        It also slows the loop that makes the calls by the factor `slowdown`. This is not a cost of the call, so the
        time without a profiler is multiplied by `slowdown` before it is subtracted.
        """
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
    """Returns the time of one repetition in ns, by kind: bytecode, python_call, c_call and operator. `number` is the
    tensor that the operators change."""
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
    """Repeats `times` times what loops in Python typically do, without calls: it uses lists, dictionaries, attributes,
    numbers and conditions."""
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


def new_profiler(steps: int) -> Profiler:
    """Returns a profiler for one step of warm-up and `steps` recorded steps.

    The profiler records shapes, from which the roofline computes the work of each operator. It records stacks, because
    only Python frames distinguish, for example, a checkpoint from a metric. If shapes are recorded, the added cost of
    stacks is smaller than the noise. Measured on a model of 120 tiny layers on a CPU: 7.5 ms per step without a
    profiler, 17 ms with a profiler that records neither, 15 to 27 ms with shapes, with or without stacks.
    """
    torch_profiler = _torch_profiler()
    profiler: Profiler = torch_profiler.profile(
        activities=torch_profiler.supported_activities(),
        schedule=torch_profiler.schedule(wait=0, warmup=1, active=steps, repeat=1),
        record_shapes=True,
        with_stack=True,
    )
    return profiler


def stop_stacks() -> None:
    """Turns off the stacks in the open recording, which continues without stacks.

    The profiler records stacks with a profile function that it sets in each thread of CPython. This function removes
    the profile functions before the profiler does. The profiler allows this: its end resets only threads that still
    have the profiler's function (torch/csrc/autograd/profiler_python.cpp, `PythonTracer::stop`). Frames that have not
    returned end with the recording.

    Up to Python 3.11, only the calling thread can be changed, so other threads keep their stacks. Since Python 3.12,
    all threads are changed, because one thread with a profile function slows the bytecode of all threads.
    """
    if not hasattr(threading, "setprofile_all_threads"):
        sys.setprofile(None)
        return
    for_new_threads = threading.getprofile()
    threading.setprofile_all_threads(None)
    threading.setprofile(for_new_threads)


def _torch_profiler() -> Any:
    # torch.profiler is partly untyped, so the type is Any.
    import torch.profiler

    return torch.profiler


class OtherProfilers:
    """Counts the running profilers that the training itself starts, including their warm-up, and cancels the monitor's
    recording when one begins.

    Two simultaneous recordings crash torch (seen with 2.13: a segmentation fault while one is exported). The replaced
    methods are the innermost methods that every profiler of torch calls. Replacing the outer methods would miss a
    profiler that was created before the monitor, because it holds references to the original outer methods."""

    def __init__(self, context: HookContext) -> None:
        self._context = context
        self._running = 0

    def install(self, capture: TraceCapture) -> None:
        """Replaces the methods of torch that begin and end a recording. `capture` is cancelled when another recording
        begins."""
        owner, begin, end = profiler_methods()
        replace = self._context.patches.replace
        replace(owner, begin, functools.partial(self._counted, capture=capture, change=1))
        replace(owner, end, functools.partial(self._counted, capture=capture, change=-1))

    def busy(self) -> bool:
        """Returns True if a profiler other than the monitor's is running."""
        return self._running > 0 or is_profiling()

    def _counted(self, original: Callable[..., Any], capture: TraceCapture, change: int) -> Callable[..., Any]:
        @functools.wraps(original)
        def counted(*arguments: Any, **options: Any) -> Any:
            if self._context.patches.live and not capture.is_own_call():
                self._running = max(0, self._running + change)
                if change > 0:
                    capture.cancel(at_once=self._context.clock.is_training_thread())
            return original(*arguments, **options)

        return counted
