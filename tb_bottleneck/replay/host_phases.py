"""How differently the profiler slows the dispatching of the phases of a step: backward, optimizer, and the rest.

On GPUs (nine trainings, torch 2.11, with stacks), dispatching without the profiler took 0.29 to 0.79 of its recorded
time in the backward pass, 0.07 to 0.46 in the optimizer, and 0.37 to 0.6 in the rest of the step.

The CPU time of the training thread is of no use for this. In steps that only fill the queue of launches it is the time
of that thread without the backward pass, which another thread runs (6 of 15 ms of a transformer on an H100). In all
others, it contains the waits for the device, in which the driver keeps the thread running (15 ms).
"""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.profiler_time.logged_steps import OPTIMIZER, logged_unprofiled
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import clip
from tb_bottleneck.measures.trace.window_rows import in_host_steps
from tb_bottleneck.replay.graph.graph import Items
from tb_bottleneck.trace.process_facts import HOST_PHASES, positive
from tb_bottleneck.trace.table import Floats

BACKWARD = "backward"
HOST_LIMITS_BELOW = 0.5
"""If the device is busy for a smaller share of a step without the profiler, its phases last as long as the host needs.
A choice."""


def phase_weights(recording: Recording, items: Items, pace: float) -> Floats | None:
    """Returns for each of `items` the ratio: scale of the dispatching of its phase / scale of that of the whole step.

    `pace` is the time (ns) that the host needs for a step, 0 if unknown. Returns None if the time of the phases without
    the profiler is not known, or does not fit the recording.
    """
    step, times = phase_times(recording, pace)
    if len(times) < 2 or sum(times.values()) >= step or not len(recording.trace.calls):
        return None
    threads = recording.trace.calls.thread[items.call]
    optimizer = recording.optimizer_steps.contains(items.at)
    backward = (items.call >= 0) & (threads != recording.host.main_thread) & ~optimizer
    inside = in_host_steps(recording, items.at)
    dispatch = (items.gap.of(Activity.DISPATCH) + items.cost) * inside / len(recording.steps)
    phases = {BACKWARD: backward, OPTIMIZER: optimizer}
    weights = np.ones(len(items))
    for mask, time in ((~backward & ~optimizer, step - sum(times.values())), *((phases[p], times[p]) for p in times)):
        recorded = dispatch[mask].sum()
        if recorded <= 0:
            return None
        weights[mask] = time / recorded / (step / dispatch.sum())
    return weights


def phase_times(recording: Recording, pace: float) -> tuple[float, dict[str, float]]:
    """Returns the time that the host needs for a step, and for the phases of which it is known, in ns."""
    if pace:
        found = recording.trace.header.context.get(HOST_PHASES)
        parts = found if isinstance(found, dict) else {}
        return pace, {name: time for name in (BACKWARD, OPTIMIZER) if (time := positive(parts.get(name))) is not None}
    logged = logged_unprofiled(recording)
    if logged is None:
        return 0.0, {}
    steps = recording.steps
    busy = sum(clip(spans, steps.begin, steps.end).total() for spans in recording.busy.values()) / len(steps)
    if busy >= HOST_LIMITS_BELOW * logged.step:
        return 0.0, {}
    return logged.step, {name: logged.parts[name] for name in (BACKWARD, OPTIMIZER) if name in logged.parts}
