"""Divides the cost of a function among its lines.

The monitor adds to a trace the line from which each function is called. For time in which the function calls nothing,
the monitor's samples show the line that runs.
"""

from collections import Counter
from collections.abc import Mapping

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.measures.user_code.frames import is_user_comprehension
from tb_bottleneck.trace.frames import frame_parts
from tb_bottleneck.trace.table import Floats, Ints, by_thread

LEADS = 0.5
"""If a line has at least this share of its function's cost, the line is reported in place of the function. For the body
of a script, the costliest line is always reported. A choice."""
SMALLEST = float(np.finfo(float).tiny)
MIN_SAMPLES = 8
"""Fewest samples of a function from which the costs of its lines are derived. A choice."""


def costs_of_lines(recording: Recording, called: Ints, cost: Floats, samples: Mapping[int, int]) -> dict[int, float]:
    """Returns a dict: line of a function -> its share (0 to 1) of the function's cost. Only known lines are included.

    `called` and `cost` have one element per sample of the function: the event row that the function calls, or -1, and
    the cost of the sample. `samples` maps lines of the function to the number of the monitor's samples in them. The
    line of a call is recorded. For time without a call, and in a comprehension (a call whose own line says little), the
    monitor's samples show the line.
    """
    trace, itself, counts = recording.trace, called < 0, Counter(samples)
    for row, own in by_thread(np.flatnonzero(~itself), called).items():
        frame = trace.names[trace.events.name[row]]
        if is_user_comprehension(frame):
            file, line, function = frame_parts(frame)
            sampled = trace.call_lines.samples_of(file, function, line)
            counts.update(sampled)
            itself[own] = bool(sampled)
    if counts.total() < MIN_SAMPLES:
        return _lines(recording, called, cost)
    costs = _lines(recording, np.where(itself, -1, called), cost)
    return _with_samples(costs, counts, float(cost[itself].sum() / max(cost.sum(), SMALLEST)))


def _with_samples(costs: Mapping[int, float], samples: Mapping[int, int], itself: float) -> dict[int, float]:
    """Returns a dict: line -> share of the cost of a function, including the time in which the function calls nothing.

    `costs` has the shares of lines with calls, and `itself` is the share without a call. `samples` has the numbers of
    samples by line. `itself` is divided among the lines in proportion to the share of samples that their calls do not
    explain. If `itself` is at least LEADS, only the samples count.
    """
    whole = sum(samples.values())
    if itself >= LEADS:
        return {line: count / whole for line, count in samples.items()}
    more = {line: max(count / whole - costs.get(line, 0.0), 0.0) for line, count in samples.items()}
    part = itself / max(sum(more.values()), SMALLEST)
    return {line: costs.get(line, 0.0) + part * more.get(line, 0.0) for line in costs.keys() | more.keys()}


def _lines(recording: Recording, called: Ints, cost: Floats) -> dict[int, float]:
    """Returns a dict: line -> share of `cost`, for the known lines that make the calls `called` (event rows, or -1)."""
    lines, line_of = np.unique(recording.trace.call_lines.of(called), return_inverse=True)
    parts = np.bincount(line_of.reshape(-1), weights=cost, minlength=len(lines)) / max(cost.sum(), SMALLEST)
    return {line: part for line, part in zip(lines.tolist(), parts.tolist(), strict=True) if line}
