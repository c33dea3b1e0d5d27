"""Aligns the clock of the device with that of the host, if the device's work begins before its launch.

A kernel cannot begin before the call that launches it. If many do, the device's times are moved so that none does,
unless the clocks drift: unless the first kernels are less early than later ones.
"""

from dataclasses import replace

import numpy as np

from tb_bottleneck.trace.columns.packed_column import look_up, packed
from tb_bottleneck.trace.events import Events
from tb_bottleneck.trace.kinds import DEVICE_KINDS, Kind
from tb_bottleneck.trace.table import Ints

EARLY_SHARE = 0.01
"""A larger share of kernels that begin before their launch is a defect. None of 85 public recordings has such a kernel.
The limit is a choice: rounded times may give a few."""
MIN_LAUNCHED, FIRST = 8, 4
"""The clocks are compared with at least this number of launches. The first quarter counts as the first kernels: at the
start of a recording, the queue of the device is empty."""
ALIKE, ALIKE_NS = 0.1, 20_000
"""The first kernels are as early as the others up to this share of the difference and this time. Chosen."""
LAUNCH_NS = 6_000
"""Least time from the start of a launch to its kernel: the median of 38 public recordings (2 to 26 us where the queue
of the device is empty)."""
LAUNCH_SPREAD_NS = 20_000
"""By this much, times from a launch to its kernel differ between these recordings."""


def with_host_clock(events: Events) -> tuple[Events, int]:
    """Returns `events` with the device's work on the host's clock, and the time in ns by which it was moved; `events`
    and 0 if the clocks agree or drift."""
    on_device = np.zeros(len(Kind), np.bool_)
    on_device[list(DEVICE_KINDS)] = True
    device = np.flatnonzero(look_up(on_device, events.kind))
    device = device[events.correlation[device] != 0]
    if len(device) < MIN_LAUNCHED:
        return events, 0
    after_launch = _after_launch(events, device)
    if len(after_launch) < MIN_LAUNCHED or np.mean(after_launch < 0) <= EARLY_SHARE:
        return events, 0
    first, earliest = int(after_launch[: len(after_launch) // FIRST].min()), int(after_launch.min())
    if first - earliest > ALIKE * -earliest + ALIKE_NS:
        return events, 0
    shift = LAUNCH_NS - earliest
    moved = events.start[:] + np.where(look_up(on_device, events.kind), shift, 0)
    order = np.lexsort((-events.duration[:], moved))
    return replace(events, start=packed(moved)).take(order), shift


def _after_launch(events: Events, device: Ints) -> Ints:
    """Returns for the rows `device` whose launch was recorded the time in ns from the start of the launch to theirs, in
    order of time."""
    calls = np.flatnonzero(events.kind == Kind.CALL)
    calls = calls[events.correlation[calls] != 0]
    if not len(calls):
        return np.empty(0, np.int64)
    ids = events.correlation[calls]
    order = np.argsort(ids, kind="stable")
    wanted = events.correlation[device]
    at = order[np.minimum(np.searchsorted(ids[order], wanted), len(order) - 1)]
    launched = ids[at] == wanted
    return np.asarray(events.start[device[launched]] - events.start[calls[at[launched]]], np.int64)
