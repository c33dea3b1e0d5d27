"""Splits a recording into training steps.

The host finishes a step before the device does. In the first recorded steps, the host often only fills the launch queue
of the device. Therefore, a step ends at the later one of two times: the end of the step on the host, and the end of the
last device operation launched in the step. Device operations are never cut at the end of a step on the host.
"""

import re
from collections import Counter

import numpy as np

from tb_bottleneck.base.arrays import distinct_rows
from tb_bottleneck.base.measure import Record
from tb_bottleneck.base.units import NS_PER_S
from tb_bottleneck.knowledge.catalogue import activity_patterns, first_match
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Ints, Rows
from tb_bottleneck.trace.trace import Trace

# An operator with this many calls or fewer does not show a period.
MIN_ITERATIONS = 3
# At least this many operators must have the same number of calls. Fewer could have equal numbers by chance.
MIN_NAMES = 3
# More than this share of the calls must be inside the iteration that they belong to. A few may be out of order.
IN_TURN = 0.9
# A first iteration longer than this many times the median is warm-up.
OUTLIER = 3.0


def find_period(trace: Trace) -> Ints:
    """Finds the iterations of a training loop without step annotations from the operators that repeat.

    Returns the start of each iteration in ns, except that the last element is the end of the last complete iteration.
    Empty if no period is found.

    In a training loop, some operators run exactly once per iteration, such as a loss or a pooling layer. These
    operators have the same number of calls and the same order in each iteration. The number of calls that most operator
    names share is the number of iterations, if the calls of these names take turns. The name that is called first marks
    the start of an iteration. One of the names must be a backward operator, because the layers of one forward pass
    repeat, too, but without a backward pass between them. The last iteration is left out, because no later start shows
    its end.

    Iterations at the start that are longer than OUTLIER times the median are left out as warm-up.
    """
    rows = trace.rows(Kind.CPU_OP)
    first, which = distinct_rows(trace.events.name[rows])
    names, counts = trace.events.name[rows[first]], np.bincount(which, minlength=len(first))
    by_name, ends = rows[np.argsort(which, kind="stable")], np.cumsum(counts)
    tally = Counter(int(n) for n in counts if n > MIN_ITERATIONS)
    for iterations, agreeing in tally.most_common(3):
        if agreeing < MIN_NAMES:
            break
        members = np.flatnonzero(counts == iterations)
        if not any("ackward" in trace.names[name] for name in names[members]):
            continue
        times = trace.events.start[by_name[(ends[members] - iterations)[:, None] + np.arange(iterations)]]
        anchor = times[np.argmin(times[:, 0])]
        # The last iteration has no successor that ends it, so it only ends the one before.
        within = (times[:, :-1] >= anchor[:-1]) & (times[:, :-1] < anchor[1:])
        if within.mean() > IN_TURN:
            return _without_warmup(anchor)
    return np.empty(0, np.int64)


def _without_warmup(begins: Ints) -> Ints:
    lengths = np.diff(begins)
    steady = np.flatnonzero(lengths <= OUTLIER * np.median(lengths))
    return begins[steady[0] :] if len(steady) else begins


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


class Steps(Record, frozen=True, eq=False):
    """The part of a recording that the report is about, split into steps. Step i is [edges[i], edges[i + 1]), in ns.

    `basis` says how the steps were found: "profiler_step" (from annotations of the profiler), "inferred" (from
    optimizer calls or a period of operators) or "whole" (the whole recording is one step). `host` has the times in ns
    at which steps begin and end on the host. A launch belongs to the step in which it is on the host. `edges` and
    `host` have one element more than there are steps. No step is empty. `left_out` is the number of damaged steps
    before and after these (`_without_damaged`).
    """

    basis: str
    edges: Ints
    host: Ints
    left_out: int = 0

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
    marks = _without_stub(trace, step_marks(trace))
    if len(marks):
        starts, ends = trace.events.start[marks], trace.events.end[marks]
        return _without_damaged(trace, _with_device_ends(trace, "profiler_step", np.append(starts, ends.max())))
    optimizer = _last_ends(trace, _rows_named(trace, _OPTIMIZER_STEP))
    if len(optimizer) > MIN_INFERRED_STEPS:
        return _without_damaged(trace, _with_device_ends(trace, "inferred", optimizer))
    period = find_period(trace)
    if len(period) > MIN_INFERRED_STEPS:
        return _without_damaged(trace, _with_device_ends(trace, "inferred", period))
    return _whole(trace)


def step_marks(trace: Trace) -> Rows:
    """Returns the event rows of the profiler's step annotations (`ProfilerStep#7`), called step marks here.

    A step mark does not nest with calls. If a step ends in a hook of the optimizer, as with the monitor, the mark of
    the next step begins inside a call that belongs to the step before.
    """
    return _rows_named(trace, _PROFILER_STEP)


def _without_empty(steps: Steps) -> Steps | None:
    """Returns `steps` without steps of 0 ns, which a damaged file can have; None if no step remains."""
    later = np.diff(steps.edges) > 0
    if later.all():
        return steps
    kept = np.append(True, later)
    return Steps(steps.basis, steps.edges[kept], steps.host[kept]) if later.any() else None


LOST_IN_STEP = 0.05
"""A step is damaged if this share of its launches has no work on the device, although another step has all of it."""
JUMP_FROM, SHORTEST_JUMP_NS = 100.0, 10 * NS_PER_S
"""A step is damaged if it is this many times as long as the median step, and as long as SHORTEST_JUMP_NS: the clock
jumped, or the process was stopped. Both are choices."""


def _without_damaged(trace: Trace, found: Steps) -> Steps | None:
    """Returns the longest sequence of `found` steps that are neither damaged nor empty; all that are not empty if each
    is damaged. None if all are empty."""
    steps = _without_empty(found)
    if steps is None or len(steps) < 2:
        return steps
    durations, ops, calls = steps.durations, trace.all_device_ops, trace.calls
    usual = np.sort(durations)[(len(durations) - 1) // 2]
    damaged = (durations > JUMP_FROM * usual) & (durations > SHORTEST_JUMP_NS)
    if len(ops) and len(calls):
        has_work = np.zeros(len(calls), np.bool_)
        has_work[ops.call[ops.launched]] = True
        step = np.searchsorted(steps.host, calls.start, side="right") - 1
        launching = (calls.role == Role.LAUNCH) & (step >= 0) & (step < len(steps))
        launches = np.bincount(step[launching], minlength=len(steps))
        lost = np.bincount(step[launching & ~has_work], minlength=len(steps))
        if ((launches > 0) & (lost == 0)).any():  # otherwise, these launches are not linked to their work
            damaged |= lost > LOST_IN_STEP * launches
    if damaged.all():
        return steps
    edges = np.flatnonzero(np.diff(np.concatenate(([True], damaged, [True])).astype(np.int8)))
    begin, end = edges[::2], edges[1::2]
    longest = int(np.argmax(end - begin))
    kept = slice(int(begin[longest]), int(end[longest]) + 1)
    left_out = len(steps) - int(end[longest] - begin[longest])
    return Steps(steps.basis, steps.edges[kept], steps.host[kept], left_out)


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
    issues = trace.events.start[trace.rows(Kind.CPU_OP, Kind.CALL)]
    if len(trace.device_ops) and len(trace.calls):
        issues = np.sort(trace.device_ops.issued(trace.calls))  # one call may replay all work of a step
    edges = np.append(trace.events.start[marks], trace.events.end[marks].max())
    work = np.diff(np.searchsorted(issues, edges))
    little = work[-1] < STUB_SHARE * np.median(work[:-1])
    length = trace.events.duration[marks]
    short = length[-1] < STUB_SHARE * np.median(length[:-1])
    return marks[:-1] if little and (short or work[-1] == 0) else marks


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
