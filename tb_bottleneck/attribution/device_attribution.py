"""Attributes the time of a run on an accelerator (the device) to regimes.

Busy time of the device is attributed to what limits the device, and idle time to what delays the device.
"""

from collections.abc import Iterator

import numpy as np

from tb_bottleneck.attribution.host_activity import REGIME_OF_ACTIVITY, Activity, HostTimeline
from tb_bottleneck.attribution.idle_gaps import LONGEST_DEVICE_PAUSE_NS, IdleGaps
from tb_bottleneck.attribution.owned_spans import Claim
from tb_bottleneck.base.intervals import EMPTY, Spans, clip, intersect, merge, subtract, union
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.roofline.kernel_bounds import BoundBy, KernelBounds
from tb_bottleneck.trace.device_ops import DeviceOps, Work
from tb_bottleneck.trace.table import Bools, Ints

STREAMS = (Work.STREAMING, Work.DEVICE_COPY)


def busy_by_regime(ops: DeviceOps, bounds: KernelBounds, begin: int, end: int) -> dict[Regime, Spans]:
    """Returns a dict from regimes to disjoint sets of time: the busy time of the device in [begin, end), in ns.

    `bounds` has for each operation what limits it. If the limit of a kernel is known, it decides the regime. Otherwise,
    the type of work that the name of the kernel shows decides the regime.

    If operations overlap in time, the time belongs to one regime only, in the order of `ops_by_regime`. Kernels that
    compute come before collectives, and collectives before copies over the link. A collective or a copy owns only
    time in which no kernel runs. Overlapping kernels, on one stream or several, are counted once.
    """
    busy, taken = {}, EMPTY
    for regime, rows in ops_by_regime(ops, bounds).items():
        spans = clip(union(ops.start[rows], ops.end[rows]), begin, end)
        busy[regime] = subtract(spans, taken)
        taken = merge(taken, spans)
    return busy


def ops_by_regime(ops: DeviceOps, bounds: KernelBounds) -> dict[Regime, Bools]:
    """Returns a dict from regimes to masks of `ops`: True for the operations whose time counts for the regime when no
    other operation overlaps.

    When operations overlap, their time counts for the regime that comes first in the dict.
    """
    is_unknown = bounds.bound_by == BoundBy.UNKNOWN
    small = bounds.small
    return {
        Regime.COMPUTE: ((bounds.bound_by == BoundBy.COMPUTE) | (is_unknown & (ops.work == Work.CONTRACTION))) & ~small,
        Regime.MEMORY: ((bounds.bound_by == BoundBy.MEMORY) | (is_unknown & np.isin(ops.work, STREAMS))) & ~small,
        Regime.UNDERFILLED: small,
        Regime.UNEXPLAINED: is_unknown & (ops.work == Work.UNKNOWN) & ~small,
        Regime.COMMUNICATION: np.isin(ops.work, (Work.COLLECTIVE, Work.PEER_COPY)),
        Regime.TRANSFER: np.isin(ops.work, (Work.UPLOAD, Work.DOWNLOAD)),
    }


def device_claims(busy: dict[Regime, Spans], gaps: IdleGaps, host: HostTimeline) -> Iterator[Claim]:
    """Yields disjoint claims (regime, start times, end times), in ns, that cover the window.

    `busy` is the busy time of the device by regime; `gaps` are all idle gaps of the device. If only calls of the
    runtime were recorded on the host, the time between two calls is unexplained, not Python.
    """
    regime_of = REGIME_OF_ACTIVITY if host.recorded else {**REGIME_OF_ACTIVITY, Activity.OTHER: Regime.UNEXPLAINED}
    for regime, spans in busy.items():
        yield regime, spans.starts, spans.ends
    host_until = gaps.begin + gaps.by_activity.total()  # the launching call returned; the rest is the launch itself
    launched = np.minimum(host_until + gaps.latency, gaps.end)
    late = gaps.queued == 0
    pause = ~late & (gaps.queued < LONGEST_DEVICE_PAUSE_NS)
    yield Regime.UNDERFILLED, gaps.begin[pause], gaps.end[pause]
    yield Regime.UNEXPLAINED, gaps.begin[~late & ~pause], gaps.end[~late & ~pause]
    dispatching = [(host_until[late], launched[late])]
    stalled = launched[late], gaps.end[late]
    for activity, spans in _activity_spans(gaps, host_until, host):
        if activity is Activity.DISPATCH:
            dispatching.append((spans.starts, spans.ends))
        else:
            yield regime_of[activity], spans.starts, spans.ends
    begins, ends = (np.concatenate(times) for times in zip(*dispatching, stalled, strict=True))
    explained = np.arange(len(begins)) < len(begins) - len(stalled[0])
    yield from _charge_syncs(gaps, begins, ends, explained)


def _activity_spans(gaps: IdleGaps, host_until: Ints, host: HostTimeline) -> Iterator[tuple[Activity, Spans]]:
    """Yields pairs (activity, time spans) of the launching thread of each gap.

    Only the time from the start of each gap to `host_until` counts. `host_until` has one time in ns per gap.
    """
    for rows, activities in host.by_thread_group(gaps.thread):
        idle = union(gaps.begin[rows], host_until[rows])
        for activity, spans in activities.items():
            if activity is not Activity.OTHER:
                yield activity, intersect(idle, spans)
                idle = subtract(idle, spans)
        yield Activity.OTHER, idle


def _charge_syncs(gaps: IdleGaps, begins: Ints, ends: Ints, explained: Bools) -> Iterator[Claim]:
    """Yields the claims on the idle intervals [begins[i], ends[i]), in ns: dispatching, launch latency and stalls.

    In each gap, the first `sync_bubble` ns of these intervals belong to `sync`. The remaining time belongs to `launch`
    where `explained` is True (dispatching and latency). The remaining time of stalls is unexplained.
    """
    order = np.argsort(begins, kind="stable")
    begins, ends, explained = begins[order], ends[order], explained[order]
    gap = np.searchsorted(gaps.begin, begins, side="right") - 1
    length = np.maximum(ends - begins, 0)
    before = np.concatenate(([0], np.cumsum(length)))[:-1]
    first = np.searchsorted(gap, gap, side="left")
    charged = np.clip(gaps.sync_bubble[gap] - (before - before[first]), 0, length) if len(gap) else length
    yield Regime.SYNC, begins, begins + charged
    for regime, rows in ((Regime.LAUNCH, explained), (Regime.UNEXPLAINED, ~explained)):
        yield regime, (begins + charged)[rows], (begins + length)[rows]
