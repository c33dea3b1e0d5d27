"""Parts of the recorded steps whose time without the profiler is known.

Some steps of a recording may have no stacks. They show how long the code between two operators takes. Such a part is
the time from the end of one operator to the start of the next one on the main thread, outside of all other operators,
such as that from `aten::item` to `aten::select`. All such times of a step with the same two operators are one part.
With these times, nine reports on trainings on a CPU stated Python outside torch within 12 % of what the trainings timed
(tests/ACCURACY.md). Operators are no parts: their times differ from step to step because of caches and page faults.

Otherwise the training process logged how long a loader without workers, the backward pass and the optimizer take. The
logged time of the optimizer counts in any case: its many small operators cost less to record than others, because they
run one after another.

With workers, a step that is slower while it is recorded waits less for the next batch, which takes the workers as long
as before. The logged time of the loader shows how long the step waits without the profiler.
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
"""Smallest share of a step that is corrected as a part of its own. A choice."""
SHORTEST_IN_COSTS = 10
"""Smallest ratio of the mean time between two operators to the highest cost of recording an operator, which these times
contain. A choice: shorter times are those of dispatching."""
_MOST_NAMES = 1 << 31  # tables of names are smaller
MOST_OF_STEP = 0.5
"""From this share of the step on, the logged time of the loader counts more than steps without stacks. A choice."""
_OWN_LOADER = re.compile("#_SingleProcessDataLoaderIter")
"""The annotation of a loader without workers, which makes its batches in this thread (torch/utils/data/dataloader.py).
"""
_WORKERS = re.compile("#_MultiProcessingDataLoaderIter")
"""The annotation of a loader with workers."""
_BACKWARD = re.compile(r"(?:^|/)torch/autograd/__init__\.py\(\d{1,6}\): backward$")
"""The function that `Tensor.backward` calls, too. The monitor times the same function."""


class StepPart(NamedTuple):
    """A part of the recorded steps: the mask `rows` of its pieces, the time `took` in each recorded step, and the time
    per step `without` the profiler. Times are in ns. Only waits for workers are longer without the profiler."""

    rows: Bools
    took: Floats
    without: float


class _Sections(Record, frozen=True, eq=False):
    """The time of steps, cut at the edges of steps and operators. `times` has the edges in order, in ns.

    Section i is [times[i], times[i + 1]) and lies in step `step[i]`; -1 is outside of all steps. `code` says between
    which operators the section lies; it is -1 for sections inside of operators. `cost` is the share of one operator's
    cost that the section contains.
    """

    times: Ints
    step: Ints
    code: Ints
    cost: Floats
    steps: int

    def per_step(self, codes: Ints, operator_ns: float) -> tuple[Floats, Floats]:
        """Returns the time in ns, less the cost of recording operators, and the number of the sections of each code.

        Both arrays have the shape (codes, steps). `codes` are sorted.
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
    """Returns the parts of the recorded steps whose time without the profiler is known. No piece is in two of them.

    The `pieces` are those of `thread`. If `logged` is False, the logged times of parts are not used.
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
    """Yields the parts whose time without the profiler is known from steps without stacks.

    Parts that do not run in every step are left out, as are those of short times between operators. A part that took
    longer without stacks keeps its time.
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
    """Returns `stackless` parts and the `logged` one. A stackless part that lies mostly inside the logged one is left
    out; of another one, the logged part leaves out the pieces that both have."""
    length = pieces.end - pieces.begin
    parts = [part for part in stackless if 2 * length[part.rows & logged.rows].sum() < length[part.rows].sum()]
    rows = logged.rows & ~np.any([part.rows for part in parts], axis=0) if parts else logged.rows
    return [*parts, logged._replace(rows=rows)]


def _waits(recording: Recording, thread: int, pieces: HostPieces, unprofiled: LoggedSteps) -> Iterator[StepPart]:
    """Yields the waits for workers as one part, if the training waits for them longer without the profiler."""
    spans, steps = _frames(recording.trace, thread, _WORKERS), recording.steps
    rows, took = spans.contains(pieces.begin), spans.covered(steps.edges[:-1], steps.edges[1:]).astype(np.float64)
    if rows.any() and took.min() > 0 and unprofiled.average(took) < unprofiled.parts.get("loader", 0.0):
        yield StepPart(rows, took, unprofiled.parts["loader"])


def _logged_parts(
    recording: Recording, thread: int, pieces: HostPieces, unprofiled: LoggedSteps
) -> Iterator[tuple[str, StepPart]]:
    """Yields the PARTS of the steps whose time without the profiler was logged, and is not longer than recorded, with
    their names."""
    steps = recording.steps
    for name, spans in _parts(recording, thread):
        took = spans.covered(steps.edges[:-1], steps.edges[1:]).astype(np.float64)
        if name in unprofiled.parts and unprofiled.average(took) >= unprofiled.parts[name]:
            yield name, StepPart(spans.contains(pieces.begin), took, unprofiled.parts[name])


def _parts(recording: Recording, thread: int) -> Iterator[tuple[str, Spans]]:
    """Yields the PARTS of the steps with their disjoint times on `thread`."""
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
    """Returns the time of a part without the profiler / its time in steps without stacks, at most 1.

    Steps without stacks can be slower than the cost of recording operators explains. It is not known whether operators,
    Python or both take that time. Parts get half of it (the square root of the ratio of the steps). A choice.
    """
    operators = without.cost[without.step >= 0].sum() / without.steps
    took = float(np.median(np.diff(edges))) - operator_ns * operators
    return math.sqrt(min(unprofiled.step / max(took, 1.0), 1.0))


def _sections(operators: Events, edges: Ints) -> _Sections:
    """Returns the sections of the steps between `edges`. `operators` are of one thread."""
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
