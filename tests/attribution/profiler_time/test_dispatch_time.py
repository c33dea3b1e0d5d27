"""The time by which the profiler delays launches is removed from the device's idle time, and only from that."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.draw import drawn_trace

from tb_bottleneck.attribution.profiler_time import dispatch_time
from tb_bottleneck.attribution.profiler_time.dispatch_time import without_dispatch_time
from tb_bottleneck.attribution.profiler_time.removal import without_profiler_time
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.steps import find_steps

US = 1_000
# Steps of 10 us, in which the device waits 6 us for a launch.
DRAWING = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    op      ######....######....######....
    launch  .....|.........|.........|....
    gpu     ......aaaa......bbbb......cccc
"""


def recording(drawing: str = DRAWING, **context: float) -> Recording:
    trace = drawn_trace(drawing, 1, tb_bottleneck={"context": context})
    return Recording(trace, find_steps(trace))


@pytest.mark.parametrize("step_us", [4.5, 7.0, 9.0])
def test_a_step_takes_as_long_as_without_the_profiler(step_us):
    before = recording(unprofiled_step_ns=step_us * US)
    after = without_profiler_time(before)
    assert after.steps.durations.tolist() == pytest.approx([step_us * US] * 2, abs=5)
    assert after.account.share(Regime.LAUNCH) == pytest.approx((step_us - 4) / step_us, abs=0.01)
    kernels = after.trace.rows(Kind.KERNEL)
    assert after.trace.events.duration[kernels].tolist() == [4 * US] * 3
    assert (after.correction.solved, after.correction.dispatch, after.as_recorded) == (True, True, before)
    assert after.correction.removed == pytest.approx(2 * (10 - step_us) * US, abs=5)


def test_predictions_start_from_the_dispatching_as_recorded():
    before = recording(unprofiled_step_ns=7.0 * US)
    assert without_profiler_time(before).for_replay is before
    assert before.for_replay is before


def test_a_kernel_is_never_earlier_than_the_one_before_it():
    after = without_dispatch_time(recording(unprofiled_step_ns=4.01 * US))
    ops = after.trace.device_ops
    assert (ops.start[1:] >= ops.end[:-1]).all()
    assert (np.diff(after.steps.edges) > 0).all()


@pytest.mark.parametrize("step_ns", [None, 9.99 * US, 12.0 * US], ids=["unknown", "nothing", "slower"])
def test_nothing_is_removed_from_a_step_that_is_not_longer(step_ns):
    before = recording(**({} if step_ns is None else {"unprofiled_step_ns": step_ns}))
    assert without_profiler_time(before) is before


def test_more_than_recording_can_cost_is_not_removed(monkeypatch):
    """In each step, an operator and a call were recorded."""
    monkeypatch.setattr(dispatch_time, "MAX_OVERHEAD_NS", {Kind.CPU_OP: 800, Kind.CALL: 700})
    after = without_profiler_time(recording(unprofiled_step_ns=7.0 * US))
    assert after.steps.durations.tolist() == pytest.approx([8.5 * US] * 2, abs=5)
    assert not after.correction.solved


def test_waits_for_the_device_and_the_loader_stay():
    drawing = DRAWING.replace("op      ######....######....######....", "loader  ######....######....######....")
    before = recording(drawing, unprofiled_step_ns=7.0 * US)
    assert before.account.share(Regime.LAUNCH) < 0.01
    assert without_dispatch_time(before) is before


def test_idle_time_of_one_of_several_devices_stays():
    before = recording(unprofiled_step_ns=7.0 * US)
    events = before.trace.events
    device = events.device[:].copy()
    device[before.trace.rows(Kind.KERNEL)[-1]] += 1
    other = replace(before.trace, events=replace(events, device=device))
    assert len(np.unique(other.all_device_ops.device)) == 2
    assert without_dispatch_time(Recording(other, before.steps)).correction is None
