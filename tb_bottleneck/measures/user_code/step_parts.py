"""Divides a step by the functions that the training loop calls, such as rollout, reward and update in reinforcement
learning, generator and discriminator, or prefill and decode. The program does not have to annotate them.

    loop        |------------------------------- step -------------------------------|
    functions   |---- rollout ----|  |- reward -|   |- forward -|
    the loop                       ..            ...             .. backward, optimizer ..
"""

from collections import Counter

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import Spans, clip, subtract, union
from tb_bottleneck.base.measure import Record
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.measures.user_code.places import Place
from tb_bottleneck.trace.frames import frame_parts, is_user_frame, short_frame
from tb_bottleneck.trace.kernel_names import cut, name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Rows

# A function with less than LEAST_PART of the window counts as part of the loop. With fewer than MIN_PARTS functions,
# the division of the step is not shown. Both are choices.
LEAST_PART, MIN_PARTS = 0.1, 2
# The loop's own frame contains nearly all of the window.
OF_WINDOW = 0.95


class StepPart(Record, frozen=True):
    """A function that the training loop calls, or the loop itself. `share` is its share of the window (0 to 1), and
    `calls` the number of its calls (0 for the loop). The `share` of `place` is 1."""

    place: Place
    share: float
    calls: int
    regimes: tuple[tuple[Regime, float], ...]
    """Pairs (regime, share of the part's time), the largest share first."""


def step_parts(recording: Recording) -> tuple[StepPart, ...]:
    """Returns the functions that the training loop calls, longest first, and then the loop itself. Functions with less
    than LEAST_PART of the window count as part of the loop. Returns () if fewer than MIN_PARTS functions remain."""
    steps, thread = recording.steps, recording.host.main_thread
    if thread is None:
        return ()
    rows = _called_by_loop(recording, thread)
    events, names = recording.trace.events, recording.trace.names
    window = steps.host[-1] - steps.host[0]
    found, named = [], []
    by_function: Counter[tuple[str, str]] = Counter()
    for row in rows.tolist():
        file, _, function = frame_parts(names[events.name[row]])
        by_function[file, function] += int(events.duration[row])
    for (file, function), spent in by_function.most_common():
        if spent < LEAST_PART * window:
            break
        own = [row for row in rows.tolist() if _is(names[events.name[row]], file, function)]
        spans = clip(union(events.start[own], events.end[own]), int(steps.host[0]), int(steps.host[-1]))
        line = frame_parts(names[events.name[own[0]]])[1]
        place = Place(1.0, cut(file), line, cut(short_frame(function)))
        found.append(_part(recording, place, spans, len(own), window))
        named.append(spans)
    if len(found) < MIN_PARTS:
        return ()
    whole = Spans(np.array([steps.host[0]], np.int64), np.array([steps.host[-1]], np.int64))
    starts, ends = (np.concatenate([getattr(spans, side) for spans in named]) for side in ("starts", "ends"))
    rest = subtract(whole, union(starts, ends))
    return (*found, _part(recording, Place(1.0), rest, 0, window))


def _part(recording: Recording, place: Place, spans: Spans, calls: int, window: int) -> StepPart:
    """Returns the part that runs in `spans`. `window` is the length of the window in ns."""
    owners = recording.owned_spans.covered(spans.starts, spans.ends)
    total = max(sum(int(ns.sum()) for ns in owners.values()), 1)
    shares = [(regime, float(owners[regime].sum() / total)) for regime in REGIMES]
    most = sorted((row for row in shares if row[1] > 0), key=lambda row: -row[1])
    return StepPart(place, float(spans.total() / window), calls, tuple(most))


def _called_by_loop(recording: Recording, thread: int) -> Rows:
    """Returns the event rows of the frames of the user's program on `thread` that the training loop calls directly.

    A frame that covers at least the share OF_WINDOW of the window belongs to the loop and is left out. Of the
    other frames in the window, only the outermost are returned.
    """
    trace, steps = recording.trace, recording.steps
    events = trace.events
    rows = trace.rows(Kind.PYTHON)
    rows = rows[
        (events.thread[rows] == thread) & (events.end[rows] > steps.host[0]) & (events.start[rows] < steps.host[-1])
    ]
    rows = rows[name_matches(trace.names, events.name[rows], is_user_frame)]
    inside = np.minimum(events.end[rows], steps.host[-1]) - np.maximum(events.start[rows], steps.host[0])
    rows = rows[inside < OF_WINDOW * (steps.host[-1] - steps.host[0])]
    if not len(rows):
        return np.empty(0, np.int64)
    # Rows are sorted by start, and frames of a thread are nested: a frame that starts inside an earlier frame also ends
    # inside it.
    latest = np.maximum.accumulate(np.concatenate(([np.int64(-(2**62))], events.end[rows][:-1])))
    return np.asarray(rows[events.start[rows] >= latest], np.int64)


def _is(frame: str, file: str, function: str) -> bool:
    """Returns True if `frame`, the name of a frame, belongs to the function `function` in `file`."""
    of = frame_parts(frame)
    return (of[0], of[2]) == (file, function)
