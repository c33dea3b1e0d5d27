"""Parts of the recorded steps whose time without the profiler is known.

There are three kinds of parts:
- Some steps of a recording may have no stacks. These steps show how long the code between two operators takes. A part
  is the time from the end of one operator to the start of the next one on the main thread, for example from
  `aten::item` to `aten::select`. All times of a step between the same two operators are one part. With these parts,
  nine reports on trainings on a CPU stated Python outside torch within 12 % of what the trainings timed
  (ACCURACY.md). Operators are no parts, because their times differ from step to step (caches, page faults).
- Without these steps, the training process may have logged how long a loader without workers, the backward pass and the
  optimizer take. The logged time of the optimizer is used in any case: the many small operators of an optimizer cost
  less to record than others, because they run one after another.
- A loader with workers takes as long for a batch as without the profiler. A step that the profiler slows down therefore
  waits less for the next batch. The logged time of the loader shows how long the step waits without the profiler.
"""

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tb_bottleneck.attribution.profiler_time.costs import costs_of
from tb_bottleneck.attribution.profiler_time.host_pieces import LEAST_LEFT, OUTSIDE, SLOWEST_PACE, HostPieces
from tb_bottleneck.attribution.profiler_time.logged_steps import OPTIMIZER, PARTS, LoggedSteps
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.attribution.training_detection import OPTIMIZER_STEP, optimizer_time_of
from tb_bottleneck.base.intervals import EMPTY, Spans, merge, subtract, union
from tb_bottleneck.base.measure import Record
from tb_bottleneck.trace.events import Events
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Bools, Floats, Ints
from tb_bottleneck.trace.trace import Trace

SMALLEST = 0.01
"""A part is corrected separately only if it takes at least this share of the step. A choice."""
SHORTEST_IN_COSTS = 10
"""Smallest ratio of the mean time between two operators to the highest cost of recording an operator. The time between
two operators contains this cost. A choice: if the time is shorter, it is dispatching."""
_MOST_NAMES = 1 << 31  # tables of names are smaller
MOST_OF_STEP = 0.5
"""If the logged time of the loader is at least this share of the step, the logged times are used instead of the steps
without stacks. A choice."""
_OWN_LOADER = re.compile("#_SingleProcessDataLoaderIter")
"""The annotation of a loader without workers, which makes its batches in this thread (torch/utils/data/dataloader.py).
"""
_WORKERS = re.compile("#_MultiProcessingDataLoaderIter")
"""The annotation of a loader with workers."""
FROM_WORKER = re.compile(r"torch/multiprocessing/reductions\.py\(\d+\): rebuild_|<built-in function loads>$")
"""The functions with which the training process reads a worker's message and opens the memory that the worker shares.
"""
_BACKWARD = re.compile(r"(?:^|/)torch/autograd/__init__\.py\(\d{1,6}\): backward$")
"""The function that `Tensor.backward` calls, too. The monitor times the same function."""


class StepPart(NamedTuple):
    """A part of the recorded steps. Times are in ns.

    `rows` is a mask of the thread's pieces (HostPieces): True for the pieces of this part. `took` has the time of the
    part in each recorded step. `without` is the time per step without the profiler. It is longer than `took` only for
    waits for workers.
    """

    rows: Bools
    took: Floats
    without: float


class _Sections(Record, frozen=True, eq=False):
    """The time of steps, cut into sections at the starts and ends of steps and operators.

    `times` has these starts and ends in order, in ns. Section i is [times[i], times[i + 1]). `step[i]` is the index of
    its step, or -1 outside all steps. `code[i]` is a number that stands for the names of the operators between which
    the section lies, or -1 if it lies inside an operator. `cost[i]` is the share of the cost of recording one operator
    that the section contains. `steps` is the number of steps.
    """

    times: Ints
    step: Ints
    code: Ints
    cost: Floats
    steps: int

    def per_step(self, codes: Ints, operator_ns: float) -> tuple[Floats, Floats]:
        """Returns the total time in ns and the number of the sections, by code and step.

        Both arrays have the shape (codes, steps). `codes` are sorted values of `code`. `operator_ns` is the cost of
        recording an operator in ns, which is subtracted from the times.
        """
        code = np.minimum(np.searchsorted(codes, self.code), max(len(codes) - 1, 0))
        rows = np.flatnonzero((codes[code] == self.code) & (self.step >= 0)) if len(codes) else np.empty(0, np.intp)
        length = np.diff(self.times)[rows]
        left = np.maximum(length - operator_ns * self.cost[rows], LEAST_LEFT * length)
        cell, shape = code[rows] * self.steps + self.step[rows], (len(codes), self.steps)
        count = len(codes) * self.steps
        sums: Floats = np.bincount(cell, left, count).astype(np.float64)
        return sums.reshape(shape), np.bincount(cell, minlength=count).astype(np.float64).reshape(shape)


def step_parts(
    recording: Recording, thread: int, pieces: HostPieces, unprofiled: LoggedSteps, logged: bool
) -> list[StepPart]:
    """Returns the parts of the recorded steps whose time without the profiler is known. No piece is in two parts.

    `pieces` are the pieces of `thread`. If `logged` is False, the parts that the training process logged are not used.
    """
    parts = list(_stackless_parts(recording, thread, pieces, unprofiled))
    if not logged:
        return parts
    waits = list(_waits(recording, thread, pieces, unprofiled))
    logged_parts = dict(_logged_parts(recording, thread, pieces, unprofiled))
    if not parts or (not waits and unprofiled.parts.get("loader", 0.0) >= MOST_OF_STEP * unprofiled.step):
        parts = list(logged_parts.values()) or parts
    elif OPTIMIZER in logged_parts:
        parts = _joined(parts, logged_parts[OPTIMIZER], pieces)
    return waits + [part for part in parts if not any((part.rows & wait.rows).any() for wait in waits)]


def _stackless_parts(
    recording: Recording, thread: int, pieces: HostPieces, unprofiled: LoggedSteps
) -> Iterator[StepPart]:
    """Yields the parts whose time without the profiler is known from steps that were recorded without stacks.

    Parts that do not run in every step are left out, and parts in which the time between operators is short
    (SHORTEST_IN_COSTS). If a part took longer in the steps without stacks, its recorded time is used.
    """
    trace, stackless, costs = recording.trace, recording.trace.stackless, costs_of(recording.trace, stacks=False)
    if stackless is None or unprofiled.uneven or costs is None:
        return
    if np.median(np.diff(stackless.edges)) * SLOWEST_PACE > unprofiled.step:
        return  # these steps are not typical
    rows = trace.rows(Kind.CPU_OP)
    recorded = _sections(trace.events.take(rows[trace.events.thread[rows] == thread]), recording.steps.edges)
    operators = stackless.operators
    without = _sections(operators.take(operators.thread == thread), stackless.edges)
    pace = _pace(without, stackless.edges, costs.operator.usual, unprofiled)
    of_piece = np.searchsorted(recorded.times, pieces.begin, side="right") - 1
    code_of_piece = np.append(recorded.code, -1)[of_piece]  # before the first edge, and after the last: -1
    codes = np.intersect1d(recorded.code, without.code)
    codes = codes[codes >= 0]
    took, (times, counts) = recorded.per_step(codes, 0.0)[0], without.per_step(codes, costs.operator.usual)
    in_all_steps = (took > 0).all(axis=1) & (times > 0).all(axis=1)
    is_long = times.sum(axis=1) >= SHORTEST_IN_COSTS * costs.operator.most * counts.sum(axis=1)
    chosen = in_all_steps & is_long & (took.mean(axis=1) >= SMALLEST * unprofiled.step)
    for code, recorded_ns, stackless_ns in zip(codes[chosen], took[chosen], times[chosen], strict=True):
        rows = code_of_piece == code
        if rows.any():
            ns = min(pace * float(np.median(stackless_ns)), unprofiled.average(recorded_ns))
            yield StepPart(rows, recorded_ns, ns)


def _joined(stackless: list[StepPart], logged: StepPart, pieces: HostPieces) -> list[StepPart]:
    """Returns the `stackless` parts and the `logged` part, without common pieces.

    A stackless part that has at least half of its time inside the logged part is left out. From the logged part, the
    pieces of the other stackless parts are removed.
    """
    length = pieces.end - pieces.begin
    parts = [part for part in stackless if 2 * length[part.rows & logged.rows].sum() < length[part.rows].sum()]
    rows = logged.rows & ~np.any([part.rows for part in parts], axis=0) if parts else logged.rows
    return [*parts, logged._replace(rows=rows)]


def _waits(recording: Recording, thread: int, pieces: HostPieces, unprofiled: LoggedSteps) -> Iterator[StepPart]:
    """Yields one part with the waits for loader workers, if these waits are longer without the profiler. Taking a ready
    batch from a worker is no wait."""
    loading, steps = _frames(recording.trace, thread, _WORKERS), recording.steps
    spans = subtract(loading, _frames(recording.trace, thread, FROM_WORKER))
    whole, took = (each.covered(steps.edges[:-1], steps.edges[1:]).astype(np.float64) for each in (loading, spans))
    rows, without = spans.contains(pieces.begin), unprofiled.parts.get("loader", 0.0) - unprofiled.average(whole - took)
    if rows.any() and took.min() > 0 and unprofiled.average(took) < without:
        yield StepPart(rows, took, without)


def _logged_parts(
    recording: Recording, thread: int, pieces: HostPieces, unprofiled: LoggedSteps
) -> Iterator[tuple[str, StepPart]]:
    """Yields pairs of a name in PARTS and the part of the steps with this name.

    Only parts whose time without the profiler was logged, and is not longer than the recorded time, are yielded.
    """
    steps = recording.steps
    for name, spans in _parts(recording, thread):
        took = spans.covered(steps.edges[:-1], steps.edges[1:]).astype(np.float64)
        if name in unprofiled.parts and unprofiled.average(took) >= unprofiled.parts[name]:
            yield name, StepPart(spans.contains(pieces.begin), took, unprofiled.parts[name])


def _parts(recording: Recording, thread: int) -> Iterator[tuple[str, Spans]]:
    """Yields pairs of a name in PARTS and the time of this part on `thread`. The times are disjoint."""
    trace, taken = recording.trace, EMPTY
    rows = trace.rows(Kind.ANNOTATION, Kind.CPU_OP)
    updates = optimizer_time_of(trace, rows[trace.events.thread[rows] == thread], OPTIMIZER_STEP)
    spans = _frames(trace, thread, _OWN_LOADER), _frames(trace, thread, _BACKWARD), updates
    for part, found in zip(PARTS, spans, strict=True):
        yield part, subtract(found, taken)
        taken = merge(taken, found)


def _frames(trace: Trace, thread: int, pattern: re.Pattern[str]) -> Spans:
    """Returns the time of the Python functions on `thread` whose names match `pattern`."""
    events = trace.events
    rows = name_matches(trace.names, events.name[:], lambda name: pattern.search(name) is not None)
    rows &= events.thread[:] == thread
    return union(events.start[rows], events.end[rows])


def _pace(without: _Sections, edges: Ints, operator_ns: float, unprofiled: LoggedSteps) -> float:
    """Returns the factor, at most 1, from the time of a part in steps without stacks to its time without the profiler.

    Steps without stacks can be slower than the cost `operator_ns` of recording operators explains. It is not known
    whether this additional time is spent in operators, in Python between operators, or in both. The parts get half of
    it: the factor is the square root of the ratio of the step times. A choice.
    """
    operators = without.cost[without.step >= 0].sum() / without.steps
    took = float(np.median(np.diff(edges))) - operator_ns * operators
    return math.sqrt(min(unprofiled.step / max(took, 1.0), 1.0))


def _sections(operators: Events, edges: Ints) -> _Sections:
    """Returns the sections of the steps. `edges` has the start of each step and the end of the last one, in ns.

    `operators` has the operators of one thread.
    """
    count, name = len(operators), operators.name[:].astype(np.int64) + 1
    times = np.concatenate((edges, operators.start[:], operators.end[:]))
    order = np.argsort(times, kind="stable")
    change = np.repeat([0, 1, -1], (len(edges), count, count))[order]
    names = np.concatenate((np.zeros(len(edges), np.int64), name, name))[order]
    outside = np.cumsum(change)[:-1] == 0
    after = np.array([0, 1 - OUTSIDE, OUTSIDE])[change[:-1]]  # an end has the index -1
    before = np.array([0, OUTSIDE, 1 - OUTSIDE])[change[1:]]
    step = np.searchsorted(edges, times[order][:-1], side="right") - 1
    step[step >= len(edges) - 1] = -1
    code = np.where(outside, names[:-1] * _MOST_NAMES + names[1:], -1)
    return _Sections(times[order], step, code, (after + before) / 2, len(edges) - 1)
