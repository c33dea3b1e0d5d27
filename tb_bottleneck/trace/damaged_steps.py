"""Finds damaged steps: a clock jumps in them, work of the device is missing or overlaps, or their end was not marked.

Steps of one recording do about the same, so a step is compared with the others.
"""

from itertools import pairwise

import numpy as np

from tb_bottleneck.base.units import NS_PER_S
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Bools, Floats, Ints
from tb_bottleneck.trace.trace import Trace

_DEVICE_WORK = (Role.LAUNCH, Role.COPY, Role.FILL)
WORSE_BY = 0.05
"""A step is damaged if the share of its launches, copies and fills without work on the device, or the share of its work
that overlaps, exceeds that of the best step by this."""
OVERLAP_NS = 500
"""Shorter overlaps of the work of one stream do not count: on H100s, the work of healthy recordings overlaps by 1 to 4
us, in up to 2 % of the operations."""
MIN_OVERLAPS, MOST_OVERLAPS = 3, 0.03
"""Fewer overlaps in a recording do not count. If there is a single step, more than this share of its work is damage.
Both are choices."""
MERGED_FROM = 1.5
"""A step is this many times as long as the median step if it contains the next one. A choice between one and two."""
JUMP_FROM, SHORTEST_JUMP_NS = 100.0, 10 * NS_PER_S
"""A step is damaged if it is this many times as long as the median step, and as long as SHORTEST_JUMP_NS: the clock
jumped, or the process was stopped. Both are choices."""


def damaged_steps(trace: Trace, edges: Ints, host: Ints, numbers: tuple[int, ...]) -> tuple[Bools, bool]:
    """Returns a mask of the steps, and True if work overlaps before them, on which the first one depends.

    Step i is [edges[i], edges[i + 1]) in ns, and [host[i], host[i + 1]) on the host. `numbers` are the numbers that the
    profiler gave the steps; empty if not known."""
    durations = np.diff(edges)
    usual = np.sort(durations)[(len(durations) - 1) // 2]
    damaged = (durations > JUMP_FROM * usual) & (durations > SHORTEST_JUMP_NS)
    if numbers:  # where the next mark is missing, the step contains two
        damaged |= np.append(np.diff(numbers) > 1, False) & (durations > MERGED_FROM * usual)
    ops, calls, before = trace.all_device_ops, trace.calls, False
    if len(ops) and len(calls) and len(durations) > 1:
        has_work = np.zeros(len(calls), np.bool_)
        has_work[ops.call[ops.launched]] = True
        launching = np.isin(calls.role, _DEVICE_WORK)
        damaged |= _worse(_share(host, calls.start[launching], ~has_work[launching]))
        overlaps = overlapping(trace)
        if np.count_nonzero(overlaps) >= MIN_OVERLAPS:
            worse = _worse(_share(np.append(np.iinfo(np.int64).min, edges), ops.start[:], overlaps))
            damaged, before = damaged | worse[1:], bool(worse[0])
    return np.asarray(damaged, np.bool_), before


def overlapping(trace: Trace) -> Bools:
    """Returns a mask of the work of all devices: True if it begins before the work before it in its stream ends."""
    ops = trace.all_device_ops
    order = np.lexsort((ops.start[:], ops.queue[:]))
    begin, end, queue = ops.start[order], ops.end[order], ops.queue[order]
    mask = np.zeros(len(ops), np.bool_)
    mask[order[1:]] = (queue[1:] == queue[:-1]) & (begin[1:] < end[:-1] - OVERLAP_NS)
    return mask


def parts_between_jumps(times: Ints) -> list[slice]:
    """Returns the slices of the sorted `times` (ns) between jumps of the clock, the one with most times first."""
    apart = np.diff(times)
    jumps = apart > SHORTEST_JUMP_NS
    jumps &= apart > JUMP_FROM * max(int(times[-1] - times[0] - apart[jumps].sum()), 1) if len(times) else jumps
    cuts = [0, *(np.flatnonzero(jumps) + 1).tolist(), len(times)]
    parts = [slice(begin, end) for begin, end in pairwise(cuts)]
    return sorted(parts, key=lambda part: part.start - part.stop)


def _share(edges: Ints, times: Ints, marked: Bools) -> Floats:
    """Returns per step the share of the `times` in it that are `marked`; NaN for a step without any."""
    step = np.searchsorted(edges, times, side="right") - 1
    inside, count = (step >= 0) & (step < len(edges) - 1), len(edges) - 1
    with np.errstate(invalid="ignore"):
        return np.asarray(
            np.bincount(step[inside & marked], minlength=count) / np.bincount(step[inside], minlength=count), np.float64
        )


def _worse(share: Floats) -> Bools:
    """Returns a mask of the steps whose `share` is larger than that of the best step. If this is most of a step, the
    recording does not have it at all: all False."""
    known = ~np.isnan(share)
    best = float(share[known].min()) if known.any() else 1.0
    return known & (share > best + WORSE_BY) if best < 1 - WORSE_BY else np.zeros(len(share), np.bool_)
