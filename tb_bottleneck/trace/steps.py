"""Splits a recording into training steps.

The host finishes a step before the device does. In the first recorded steps, the host often only fills the launch queue
of the device. Therefore, a step ends at the later one of two times: the end of the step on the host, and the end of the
last device operation launched in the step. Device operations are never cut at the end of a step on the host.
"""

import re

import numpy as np

from tb_bottleneck.base.measure import Record
from tb_bottleneck.knowledge.catalogue import activity_patterns, first_match
from tb_bottleneck.trace.damaged_steps import (
    MOST_OVERLAPS,
    SHORTEST_JUMP_NS,
    damaged_steps,
    overlapping,
    parts_between_jumps,
)
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.period import find_period
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Ints, Rows
from tb_bottleneck.trace.trace import Trace

_PROFILER_STEP = re.compile(r"^ProfilerStep")
_NUMBER = re.compile(r"^ProfilerStep#(\d{1,9})$", re.ASCII)
_OPTIMIZER_STEP = re.compile(r"^Optimizer\.step#")
_BACKWARD = re.compile(r"evaluate_function|[a-z0-9]Backward\d*$")
MIN_INFERRED_STEPS = 3
MIN_STEPS_TO_LOSE_ONE = 3
# The last step annotation lasts until the profiler stops. If it has less than this share of the time and the work of a
# usual step, it contains no step. torch-tb-profiler drops a last step with less than 80 % of the kernels of the step
# before (tb_plugin/torch_tb_profiler/profiler/event_parser.py). With half, steps of gradient accumulation without an
# optimizer update are kept.
STUB_SHARE = 0.5
WHOLE_SHARE = 0.9
"""Work after the last mark is that of a step without a mark from this share of a usual step on. Of 121 recordings, one
has such work: that of a whole step, 0.2 s later. The others have at most 0.07 of a step. The share is a choice."""


class Steps(Record, frozen=True, eq=False):
    """The part of a recording that the report is about, split into steps. Step i is [edges[i], edges[i + 1]), in ns.

    `basis` says how the steps were found: "profiler_step" (from annotations of the profiler), "inferred" (from
    optimizer calls or a period of operators) or "whole" (the whole recording is one step). `host` has the times in ns
    at which steps begin and end on the host. A launch belongs to the step in which it is on the host. `edges` and
    `host` have one element more than there are steps. No step is empty. `damaged` is the number of damaged steps
    (damaged_steps.py), and `others` that of whole steps that they separate from these.
    """

    basis: str
    edges: Ints
    host: Ints
    damaged: int = 0
    others: int = 0

    def __len__(self) -> int:
        return len(self.edges) - 1

    @property
    def begin(self) -> int:
        """Start of the first step, in ns."""
        return int(self.edges[0])

    @property
    def end(self) -> int:
        """End of the last step, in ns."""
        return int(self.edges[-1])

    @property
    def durations(self) -> Ints:
        """Duration of each step, in ns."""
        return np.diff(self.edges)


def find_steps(trace: Trace) -> Steps | None:
    """Returns the steps of a recording without damaged ones, or None if there is neither a device operation nor an
    operator.

    The steps are taken from the profiler's step annotations. If there are none, they are taken from optimizer calls,
    then from a period of operators (`find_period`). If nothing of this exists, the whole recording is one step.
    """
    recorded = step_marks(trace)
    jumped = _jumps_in_last(trace, recorded)
    marks = recorded[:-1] if jumped and len(recorded) > 1 else _without_stub(trace, recorded)
    if len(marks):
        starts, ends = trace.events.start[marks], trace.events.end[marks]
        found = _with_device_ends(trace, "profiler_step", np.append(starts, ends.max()))
        issues = _issues(trace)
        at_marks = np.searchsorted(issues, np.append(starts, ends.max()))
        usual = np.median(np.diff(at_marks))
        before, after = at_marks[0] > STUB_SHARE * usual, usual > 0 and len(issues) - at_marks[-1] > WHOLE_SHARE * usual
        unmarked = int(before) + int(after)
        return _without_damaged(trace, Steps(found.basis, found.edges, found.host, int(jumped) + unmarked))
    optimizer = _last_ends(trace, _rows_named(trace, _OPTIMIZER_STEP))
    if len(optimizer) > MIN_INFERRED_STEPS:
        return _without_damaged(trace, _with_device_ends(trace, "inferred", optimizer))
    period = find_period(trace)
    if len(period) > MIN_INFERRED_STEPS:
        return _without_damaged(trace, _with_device_ends(trace, "inferred", period))
    return _without_damaged(trace, _whole(trace))


def step_marks(trace: Trace) -> Rows:
    """Returns the event rows of the profiler's step annotations (`ProfilerStep#7`), called step marks here.

    A step mark does not nest with calls. If a step ends in a hook of the optimizer, as with the monitor, the mark of
    the next step begins inside a call that belongs to the step before.
    """
    return _rows_named(trace, _PROFILER_STEP)


def _jumps_in_last(trace: Trace, marks: Rows) -> bool:
    """Returns True if the clock jumps in the last of `marks`: events of the step follow long after its end."""
    starts = trace.events.start[:]
    if not len(marks) or int(starts[-1]) - int(trace.events.end[marks[-1]]) < SHORTEST_JUMP_NS:
        return False
    first, *_ = sorted(parts_between_jumps(starts), key=lambda part: part.start)
    return first.stop < len(starts) and bool(trace.events.start[marks[-1]] <= starts[first.stop - 1])


def _without_empty(steps: Steps) -> Steps | None:
    """Returns `steps` without steps of 0 ns, which a damaged file can have; None if no step remains."""
    later = np.diff(steps.edges) > 0
    if later.all():
        return steps
    kept = np.append(True, later)
    return Steps(steps.basis, steps.edges[kept], steps.host[kept], steps.damaged) if later.any() else None


def _without_damaged(trace: Trace, found: Steps | None) -> Steps | None:
    """Returns the longest sequence of `found` steps that are neither damaged nor empty; all that are not empty if each
    is damaged. None if all are empty."""
    steps = _without_empty(found) if found is not None else None
    if steps is None:
        return None
    if len(steps) < 2:
        return _single_step(trace, steps)
    damaged, before = damaged_steps(trace, steps.edges, steps.host, step_numbers(trace, steps))
    if damaged.all():
        return steps
    bounds = np.flatnonzero(np.diff(np.concatenate(([True], damaged, [True])).astype(np.int8)))
    begin, end = bounds[::2], bounds[1::2]
    longest = int(np.argmax(end - begin))
    kept = slice(int(begin[longest]), int(end[longest]) + 1)
    count = steps.damaged + int(np.count_nonzero(damaged)) + int(before)
    others = int(np.count_nonzero(~damaged) - (end[longest] - begin[longest]))
    return Steps(steps.basis, steps.edges[kept], steps.host[kept], count, others)


def _single_step(trace: Trace, step: Steps) -> Steps:
    """Returns a single `step`: its larger part if the clock jumps in it. It counts as damaged then, or if work of the
    device overlaps."""
    if len(trace.all_device_ops) and overlapping(trace).mean() > MOST_OVERLAPS:
        step = Steps(step.basis, step.edges, step.host, step.damaged + 1)
    ops, rows = trace.device_ops, trace.rows(Kind.CPU_OP)
    starts, ends = (ops.start[:], ops.end[:]) if len(ops) else (trace.events.start[rows], trace.events.end[rows])
    inside = (starts >= step.begin) & (starts < step.end)
    parts = parts_between_jumps(starts[inside])
    if len(parts) < 2:
        return step
    begin, end = int(starts[inside][parts[0]][0]), int(ends[inside][parts[0]].max())
    edges = np.array([step.begin if parts[0].start == 0 else begin, end])
    return Steps(step.basis, edges, np.maximum(np.minimum(step.host, end), edges[0]), step.damaged + 1)


def step_numbers(trace: Trace, steps: Steps) -> tuple[int, ...]:
    """Returns the number of each step as counted by `prof.step()`; an empty tuple if any step has no number."""
    if steps.basis != "profiler_step":
        return ()
    marks = step_marks(trace)
    by_start = dict(zip(trace.events.start[marks].tolist(), trace.events.name[marks].tolist(), strict=True))
    names = (trace.names[by_start[start]] if start in by_start else "" for start in steps.host[:-1].tolist())
    numbers = [match and int(match[1]) for match in map(_NUMBER.match, names)]
    return tuple(number for number in numbers if number is not None) if None not in numbers else ()


def _rows_named(trace: Trace, pattern: re.Pattern[str]) -> Rows:
    rows = trace.rows(Kind.ANNOTATION, Kind.CPU_OP)
    return rows[name_matches(trace.names, trace.events.name[rows], lambda name: bool(pattern.search(name)))]


def _without_stub(trace: Trace, marks: Rows) -> Rows:
    """Returns `marks` (rows of step marks) without the last one, if the last mark does not contain a complete step.

    This is the case if nothing was launched in it, or if it is short and little was launched in it. A last mark that is
    not short is kept even if little was launched in it, because the other steps may launch more only for an evaluation.
    """
    if len(marks) < 2:
        return marks
    edges = np.append(trace.events.start[marks], trace.events.end[marks].max())
    work = np.diff(np.searchsorted(_issues(trace), edges))
    little = work[-1] < STUB_SHARE * np.median(work[:-1])
    length = trace.events.duration[marks]
    short = length[-1] < STUB_SHARE * np.median(length[:-1])
    return marks[:-1] if little and (short or work[-1] == 0) else marks


def _issues(trace: Trace) -> Ints:
    """Returns the sorted times (ns) at which the work of devices was issued; without it, those of operators and calls.
    One call may replay all work of a step."""
    if len(trace.device_ops) and len(trace.calls):
        return np.sort(trace.device_ops.issued(trace.calls))
    return trace.events.start[trace.rows(Kind.CPU_OP, Kind.CALL)]


def _last_ends(trace: Trace, rows: Rows) -> Ints:
    """Returns the end of the last optimizer call of each step, in ns. `rows` are the event rows of optimizer calls.

    Consecutive optimizer calls without a backward pass between them belong to one step. If no backward pass was
    recorded (a replayed CUDA graph records none), any launch counts as a backward pass.
    """
    starts, ends = trace.events.start[rows], trace.events.end[rows]
    if len(rows) < 2:
        return ends
    backward = trace.events.start[_rows_named(trace, _BACKWARD)]
    between = backward if len(backward) else trace.calls.of(Role.LAUNCH).start
    passes = np.searchsorted(between, starts[1:]) - np.searchsorted(between, ends[:-1])
    return np.append(ends[:-1][passes > 0], ends[-1])


def _with_device_ends(trace: Trace, basis: str, host: Ints) -> Steps:
    """Returns the steps between the times `host` (ns), which are the boundaries of the steps on the host.

    The end of a step is moved to the end of the last device operation launched in the step, if this is later. The first
    step starts when the work launched before it has ended.
    """
    ops = trace.device_ops
    edges = host.astype(np.int64).copy()
    if len(ops):
        step = np.searchsorted(host, ops.issued(trace.calls), side="right") - 1
        step[ops.left_over()] = -1
        inside = step < len(host) - 1
        np.maximum.at(edges, step[inside] + 1, ops.end[inside])
        edges = np.maximum.accumulate(edges)
        if len(host) > MIN_STEPS_TO_LOSE_ONE:
            # The profiler drains the device when it starts, so only the first step finds an empty queue.
            return Steps(basis, edges[1:], host[1:])
    return Steps(basis, edges, host)


def _whole(trace: Trace) -> Steps | None:
    """Returns one step from the first to the last device operation; without these, from the first to the last operator.

    Returns None if there are neither. Device operations launched before the recording are left out. If the host fetched
    a batch before the first operation, the step starts with the last one of these fetches. On the host, it starts with
    the operator that launches the first operation.
    """
    ops, launch = trace.device_ops, None
    if len(ops):
        left_over = ops.left_over()
        begin = int(ops.end[left_over].max() if left_over.any() else ops.start.min())
        end = int(ops.end.max())
        own = ops.launched & ~left_over
        launch = _operator_at(trace, int(ops.issued(trace.calls)[own].min())) if own.any() else None
    else:
        rows = trace.rows(Kind.CPU_OP)
        if not len(rows):
            return None
        begin, end = int(trace.events.start[rows].min()), int(trace.events.end[rows].max())
    edges = np.array([_last_fetch_before(trace, begin), end])
    host = edges if launch is None else np.array([min(int(edges[0]), launch), end])
    return Steps("whole", edges, host) if edges[1] > edges[0] else None


def _operator_at(trace: Trace, time: int) -> int:
    """Returns the start of the outermost operator that runs at `time` (ns), or `time` if none does."""
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[(trace.events.start[rows] <= time) & (trace.events.end[rows] > time)]
    return int(trace.events.start[rows].min()) if len(rows) else time


def _last_fetch_before(trace: Trace, begin: int) -> int:
    """Returns the start of the last fetch of a batch before the time `begin`, or `begin` if there is none."""
    patterns = activity_patterns("annotation")
    rows = trace.rows(Kind.ANNOTATION, Kind.CPU_OP)
    rows = rows[trace.events.start[rows] < begin]
    is_fetch = name_matches(
        trace.names, trace.events.name[rows], lambda name: first_match(patterns, name) == "load_batch"
    )
    return int(trace.events.start[rows[is_fetch]].max()) if is_fetch.any() else begin
