"""Results are cached per recording, and the cache does not keep the recording alive."""

import gc
import weakref

from helpers.draw import drawn_trace

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.trace.steps import find_steps


def recorded():
    trace = drawn_trace("step aaaabbbb\nop ##..##..")
    return Recording(trace, find_steps(trace))


def test_the_function_runs_once_per_recording_and_the_recording_is_freed():
    calls = []

    @memoized
    def steps(recording):
        calls.append(len(recording.steps))
        return len(recording.steps)

    first, second = recorded(), recorded()
    assert [steps(first), steps(first), steps(second), steps(first)] == [2, 2, 2, 2]
    assert len(calls) == 2
    gone = weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None
