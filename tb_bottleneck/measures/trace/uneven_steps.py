"""Measures of steps that differ: first runs of code, much longer steps, and upper limits of gains from fast steps.

A first run is the first execution of code, in which it is compiled, loaded or tuned. A limit is the largest share of
the window that a fix of a regime can save (measures/unaffected_steps.py).
"""

from collections.abc import Callable

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import clip
from tb_bottleneck.base.measure import Measure, Missing, text_measure
from tb_bottleneck.base.regime import DEVICE_REGIMES, Regime
from tb_bottleneck.measures.trace.window_rows import host_rows, host_step_of
from tb_bottleneck.measures.unaffected_steps import fast_step
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.table import Ints, Rows

# A start-up may take the first steps of a recording; first runs in most of at least this many steps are no start-up.
MIN_STEPS_TO_RECUR = 3


def first_runs_of(recording: Recording) -> tuple[Ints, Ints, Ints]:
    """Returns three arrays with one element per interval in which the device has no work and first runs occur: the
    start of the interval, its end, and the time of the first runs in the interval. All times are in ns.

    On a CPU run, the intervals are the first runs on the main thread.
    """
    if recording.on_device:
        gaps = recording.gaps
        starting = gaps.by_activity.of(Activity.INITIALIZE)
        rows = starting > 0
        return gaps.begin[rows], gaps.end[rows], starting[rows]
    thread = recording.host.main_thread
    if thread is None:
        return (np.empty(0, np.int64),) * 3
    spans = clip(recording.host.activities(thread)[Activity.INITIALIZE], recording.steps.begin, recording.steps.end)
    return spans.starts, spans.ends, spans.ends - spans.starts


def first_runs_recur(recording: Recording, share: float) -> bool:
    """Returns True if first runs occur again and again: in the half of the steps with the least time in first runs,
    first runs still take more than `share` of the time.

    First runs recur if torch.compile meets a new shape in each step, but not if they are only in the first steps.
    Returns False for fewer than MIN_STEPS_TO_RECUR steps.
    """
    edges = recording.steps.edges
    if len(recording.steps) < MIN_STEPS_TO_RECUR:
        return False
    begin, _, starting = first_runs_of(recording)
    step = np.searchsorted(edges, begin, side="right") - 1
    by_step = np.bincount(step, weights=starting, minlength=len(recording.steps))
    calmest = np.argsort(by_step, kind="stable")[: len(by_step) // 2]
    return bool(by_step[calmest].sum() > share * np.diff(edges)[calmest].sum())


def interruption_limit(recording: Recording) -> Measure | Missing:
    """Largest share of the window that a fix of interruptions can save, according to the time of steps without
    interruptions."""
    return _limit(recording, Regime.INTERRUPTION)


def input_limit(recording: Recording) -> Measure | Missing:
    """Largest share of the window that a fix of waits for data can save, according to the time of steps without such
    waits."""
    return _limit(recording, Regime.INPUT)


def host_limit(recording: Recording) -> Measure | Missing:
    """Largest share of the window that a fix of pauses of Python can save, according to the time of steps without such
    pauses."""
    return _limit(recording, Regime.HOST)


def _limit(recording: Recording, regime: Regime) -> Measure | Missing:
    """Returns the largest share of the window that a fix of `regime` can save: 1 - time of a fast step without the
    regime / mean step time. Missing if too few steps are without the regime."""
    edges = recording.steps.edges
    costs = recording.owned_spans.of(regime).covered(edges[:-1], edges[1:]).astype(np.float64)
    times = np.diff(edges).astype(np.float64)
    fast = fast_step(times, costs)
    if not fast:
        return Missing("this time is in all steps, or too few steps are without it")
    return Measure(max(1 - fast / float(times.mean()), 0.0), "share", "window", len(times))


# If a tenth of the steps takes LONG_STEP times the median, these steps cost about a tenth of the time: as much as a
# problem.
LONG_STEP = 2.0
# With fewer steps, the median is not the time of a usual step.
MIN_STEPS = 3
_WORKING = (*DEVICE_REGIMES, Regime.LAUNCH, Regime.UNEXPLAINED)
_NONE = Missing("no step takes twice as long as the median one")


def uneven_steps(recording: Recording) -> Measure | Missing:
    """The number of long steps, which take at least LONG_STEP times the median; missing if there are none.

    Possible reasons are an evaluation that no recorded frame shows, other processes on the same cores, and batches of
    different size.
    """
    rows, edges = _uneven_rows(recording), recording.steps.edges
    if not len(rows):
        return _NONE
    longest = int(rows[np.argmax(recording.steps.durations[rows])])
    begin, end = int(edges[longest]), int(edges[longest + 1])
    return Measure(float(len(rows)), "count", "window", len(recording.steps), begin=begin, end=end)


def judged_steps(recording: Recording) -> Measure | Missing:
    """The number of steps in the window."""
    return Measure(float(len(recording.steps)), "count", "window", len(recording.steps))


def uneven_step_factor(recording: Recording) -> Measure | Missing:
    """Mean time of long steps (see `uneven_steps`) / median step time, as text."""
    rows, length = _uneven_rows(recording), recording.steps.durations
    if not len(rows):
        return _NONE
    return text_measure(f"{float(length[rows].mean() / np.median(length)):.2g}", len(rows))


def unexplained_excess(recording: Recording) -> Measure | Missing:
    """The excess of long steps (see `uneven_steps`): their working time beyond the median working time of a step (share
    of the window).

    Working time is the time of the device's regimes, of `launch` and of `unexplained`. Waits of known kinds have other
    regimes and do not count.
    """
    rows, steps = _uneven_rows(recording), recording.steps
    if not len(rows):
        return _NONE
    covered = recording.owned_spans.covered(steps.edges[:-1], steps.edges[1:])
    working = np.sum([covered[regime] for regime in _WORKING], axis=0)
    beyond = np.maximum(working[rows] - np.median(working), 0).sum()
    return Measure(float(beyond) / recording.account.window, "share", "window", len(rows))


def uneven_step_operators(recording: Recording) -> Measure | Missing:
    """Mean number of operators in long steps (see `uneven_steps`) / median number of operators per step, as text.

    A value of 1 shows that long steps do the same work as others, but take longer.
    """
    rows = _uneven_rows(recording)
    operators = host_step_of(recording, recording.trace.events.start[recording.trace.rows(Kind.CPU_OP)])
    counts = np.bincount(operators[(operators >= 0) & (operators < len(recording.steps))], minlength=1)
    if not len(rows) or len(counts) < len(recording.steps) or not np.median(counts):
        return _NONE if not len(rows) else Missing("no operators were recorded")
    return text_measure(f"{float(counts[rows].mean() / np.median(counts)):.2g}", len(rows))


def calls_of_uneven_steps(recording: Recording, is_function: Callable[[str], bool]) -> Rows:
    """Returns the event rows of the calls of those Python functions that run only in long steps (see `uneven_steps`),
    on the main thread. A call inside another such call is left out.

    `is_function` returns True for the names of the frames to consider.
    """
    events = recording.trace.events
    frames = host_rows(recording, is_function, Kind.PYTHON)
    frames = frames[events.thread[frames] == recording.host.main_thread]
    in_long = np.isin(host_step_of(recording, events.start[frames]), _uneven_rows(recording))
    only = frames[in_long & ~np.isin(events.name[frames], events.name[frames[~in_long]])]
    outermost = nest(events.start[only], events.end[only]).parent == np.arange(len(only))
    return np.asarray(only[outermost], np.intp)


def _uneven_rows(recording: Recording) -> Ints:
    """Returns the indices of the long steps (see `uneven_steps`); empty for fewer than MIN_STEPS steps."""
    length = recording.steps.durations
    if len(length) < MIN_STEPS:
        return np.empty(0, np.int64)
    return np.flatnonzero(length >= LONG_STEP * np.median(length))
