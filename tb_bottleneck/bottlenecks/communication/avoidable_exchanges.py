"""Exchanges of gradients: those that DistributedDataParallel repeats for each portion of a batch, and the largest share
of the time that better exchanges can save on a CPU.

With gradient accumulation, a batch is divided into portions, and their gradients are added. One exchange per optimizer
step is enough: the exchange after the last portion can contain the gradients of all portions (pytorch docs,
DistributedDataParallel.no_sync).
"""

from collections.abc import Callable

import numpy as np

from tb_bottleneck.attribution.cpu_attribution import FREES_GRADIENTS, undisturbed_share, work_by_regime
from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.attribution.training_detection import OPTIMIZER_STEP
from tb_bottleneck.base.intervals import Spans, merge, subtract, union
from tb_bottleneck.base.measure import Measure, Missing, Record
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.communication.facts import (
    DATA_PARALLEL_FORWARD,
    NO_COLLECTIVE,
    NO_DATA_PARALLEL,
    collectives_of,
    names_with,
)
from tb_bottleneck.measures.trace.window_rows import host_rows, with_example
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Bools, Ints, by_thread

_REDUCTIONS = ("allreduce", "all_reduce")


def exchanged_portions(recording: Recording) -> Measure | Missing:
    """Portions of a batch whose gradients DistributedDataParallel exchanges, per optimizer step (count).

    A portion is a forward pass, with the all-reduces before the next forward pass. A portion counts if it is the last
    one before an optimizer step, or if it has the same all-reduces as the last one. Portions with other all-reduces,
    such as those of batch norm, do not count.
    """
    portions = _portions_of(recording)
    if not len(portions.begin):
        return NO_DATA_PARALLEL
    if not portions.needed.any():
        return Missing("no step of an optimizer was recorded")
    rows = collectives_of(recording)
    rows = rows.take(names_with(recording, rows.name, *_REDUCTIONS))
    if not len(rows):
        return NO_COLLECTIVE
    repeated = repeated_exchanges(recording, rows.issued, rows.bytes)
    exchanged, of_row = np.unique(portions.at(rows.issued), return_inverse=True)
    batches, count = np.unique(portions.batch[exchanged[exchanged >= 0]], return_counts=True)
    needed = np.minimum(portions.needed[batches], count).sum()
    if not needed:
        return Missing("no exchange of gradients before a step of an optimizer was recorded")
    more = len(np.unique(of_row[repeated]))
    return with_example(float(1 + more / needed), "count", "optimizer step", rows.start, rows.end)


def repeated_exchanges(recording: Recording, issued: Ints, kind: Ints) -> Bools:
    """Returns a mask of collectives: True for a collective whose gradients a later collective exchanges again.

    `issued` has the times in ns at which the collectives are issued. `kind` has for each all-reduce a number for its
    group and size, and -1 for other collectives. An exchange of a portion is repeated if the last portion before the
    optimizer step has the same all-reduces. All values are False if there is no DistributedDataParallel.
    """
    portions, repeated = _portions_of(recording), np.zeros(len(issued), np.bool_)
    if not len(portions.begin):
        return repeated
    portion = np.where(kind >= 0, portions.at(issued), -1)
    rows_of = {number: rows for number, rows in by_thread(np.arange(len(issued)), portion).items() if number >= 0}
    for batch, own in by_thread(np.array(sorted(rows_of), np.int64), portions.batch).items():
        needed = int(portions.needed[batch])
        last = sorted(kind[rows_of[int(own[-1])]].tolist())
        for number in own[:-needed].tolist() if needed else ():
            repeated[rows_of[number]] = sorted(kind[rows_of[number]].tolist()) == last
    return repeated


def exchange_limit(recording: Recording) -> Measure | Missing:
    """Largest share of the window that better exchanges can save in a run on the CPU.

    Three kinds of time can be saved: the collectives that no other work hides, their calls, and the time that other
    operators lose because the threads of the backend and of the other ranks use the same cores (see
    `undisturbed_share`). The time of a call lasts from the end of the operator before the call to the start of the
    operator after it. Collectives that a backward pass starts have no calls.
    """
    if recording.on_device:
        return Missing("the operators run on a device")
    operators, events, steps = recording.main_operators, recording.trace.events, recording.steps
    start, end = events.start[operators.rows], events.end[operators.rows]
    by_regime = work_by_regime(recording.trace, operators.rows)
    exchanging = by_regime.get(Regime.COMMUNICATION, np.zeros(len(start), np.bool_))
    exchanges = union(start[exchanging], end[exchanging])
    window = Spans(np.array([steps.begin]), np.array([steps.end]))
    pauses = subtract(window, subtract(union(start[~exchanging], end[~exchanging]), exchanges))
    is_call = exchanges.covered(pauses.starts, pauses.ends) > 0
    calls = Spans(pauses.starts[is_call], pauses.ends[is_call])
    saved = merge(recording.owned_spans.of(Regime.COMMUNICATION), calls).total()
    computing = recording.account.window - pauses.total()
    lost = (1 - undisturbed_share(recording.trace, operators)) * computing
    share = min((saved + lost) / recording.account.window, 1.0)
    return Measure(share, "share", "window", len(collectives_of(recording)))


class _Portions(Record, frozen=True, eq=False):
    """The forward passes of DistributedDataParallel. With gradient accumulation, a batch has several: its portions.

    `begin` has the start of each portion in ns, `batch` the number of its batch. A batch ends when an optimizer steps
    or gradients are set to zero. `needed` has for each batch how often its gradients have to be exchanged: once for
    each optimizer that steps. It is 0 for the last batch if the recording ends before its optimizer step.
    """

    begin: Ints
    batch: Ints
    needed: Ints

    def at(self, times: Ints) -> Ints:
        """Returns for each of `times` (ns) the index of the portion that contains it; -1 before the first portion."""
        return np.asarray(np.searchsorted(self.begin, times, side="right") - 1, np.int64)


@memoized
def _portions_of(recording: Recording) -> _Portions:
    """Returns the portions of batches in the window. Without DistributedDataParallel, there are none."""

    def begins(test: Callable[[str], bool]) -> Ints:
        return np.sort(recording.trace.events.start[host_rows(recording, test, Kind.ANNOTATION, Kind.CPU_OP)])

    forwards = begins(lambda name: name == DATA_PARALLEL_FORWARD)
    updates = begins(lambda name: name.startswith(OPTIMIZER_STEP))
    ends = np.sort(np.concatenate((updates, begins(lambda name: name.startswith(FREES_GRADIENTS)))))
    following = np.append(forwards[1:], np.iinfo(np.int64).max)
    closes = np.searchsorted(ends, following) > np.searchsorted(ends, forwards)
    stepped = np.searchsorted(updates, following) - np.searchsorted(updates, forwards)
    batch: Ints = np.cumsum(closes) - closes
    needed = np.append(np.where(len(updates), np.maximum(stepped[closes], 1), 0), 0)
    return _Portions(forwards, batch.astype(np.int64), needed.astype(np.int64))
