"""How often the gradients of an optimizer step are exchanged."""

import numpy as np

from tb_bottleneck.attribution.optimizer_steps import OPTIMIZER_STEP
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.measures.trace.collectives import (
    DATA_PARALLEL_FORWARD,
    NO_COLLECTIVE,
    NO_DATA_PARALLEL,
    collectives_of,
)
from tb_bottleneck.measures.trace.window import host_rows, with_example
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches

_REDUCTIONS = ("allreduce", "all_reduce")


def exchanged_portions(recording: Recording) -> Measure | Missing:
    """Portions of a batch whose gradients DistributedDataParallel exchanges, per optimizer step.

    These are the forward passes with an all-reduce before the next one begins. With gradient accumulation one is
    enough: the last portion's exchange contains the gradients of all (pytorch docs, DistributedDataParallel.no_sync).
    """
    trace, kinds = recording.trace, (Kind.ANNOTATION, Kind.CPU_OP)
    forwards = host_rows(recording, lambda name: name == DATA_PARALLEL_FORWARD, *kinds)
    updates = host_rows(recording, lambda name: name.startswith(OPTIMIZER_STEP), *kinds)
    if not len(forwards):
        return NO_DATA_PARALLEL
    if not len(updates):
        return Missing("no step of an optimizer was recorded")
    rows = collectives_of(recording)
    rows = rows.take(
        name_matches(trace.names, rows.name, lambda name: any(word in name.lower() for word in _REDUCTIONS))
    )
    if not len(rows):
        return NO_COLLECTIVE
    begins = np.sort(trace.events.start[forwards])
    portion = np.searchsorted(begins, rows.issued, side="right") - 1
    exchanged = len(np.unique(portion[portion >= 0]))
    return with_example(exchanged / len(updates), "count", "optimizer step", rows.start, rows.end)


def _reduces(name: str) -> bool:
    return any(word in name.lower() for word in _REDUCTIONS)
