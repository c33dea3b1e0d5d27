"""What was found in a recording is remembered, and keeps nothing of it alive."""

import gc
import weakref

from draw import drawn_trace

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.trace.steps import find_steps


def recorded():
    trace = drawn_trace("step aaaabbbb\nop ##..##..")
    return Recording(trace, find_steps(trace))


def test_a_recording_is_looked_at_once_and_let_go_of():
    asked = []

    @memoized
    def steps(recording):
        asked.append(len(recording.steps))
        return len(recording.steps)

    one, other = recorded(), recorded()
    assert [steps(one), steps(one), steps(other), steps(one)] == [2, 2, 2, 2]
    assert len(asked) == 2
    gone = weakref.ref(one)
    del one
    gc.collect()
    assert gone() is None
