"""Tells whether worker processes set the pace of the training: it then waits for each batch, however short its step."""

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.measures.trace.loader import (
    LONGEST_HANDOVER_NS,
    NO_LOADER,
    WORKER_ITERATOR,
    fetches,
    loader_iterator,
)

# If most fetches wait, for this share of the time, the workers are always behind and determine the pace of the
# training. In the public ResNet-50 recordings with 4 workers, fetches take 0.6 and 0.9 %: handing over 19 MB.
SLOW_FETCHES_FROM, WAITING_FROM = 0.5, 0.03


def workers_behind(recording: Recording) -> Measure | Missing:
    """1 if training waits for its workers' batches most of the time, otherwise 0."""
    count = len(fetches(recording))
    return Measure(float(workers_are_behind(recording)), "count", "", count) if count else NO_LOADER


def made_by_workers(recording: Recording) -> bool:
    """Returns True if worker processes are known to make the batches."""
    iterator = loader_iterator(recording)
    return isinstance(iterator, Measure) and iterator.text == WORKER_ITERATOR


def workers_are_behind(recording: Recording) -> bool:
    """Returns True if training waits for its workers' batches, not only for their handover."""
    if not made_by_workers(recording):
        return False
    events, rows = recording.trace.events, fetches(recording)
    durations = events.duration[rows[recording.in_window(events.start[rows])]]
    mostly_slow = bool(len(durations)) and float(np.mean(durations > LONGEST_HANDOVER_NS)) >= SLOW_FETCHES_FROM
    return mostly_slow and float(durations.sum()) >= WAITING_FROM * recording.account.window
