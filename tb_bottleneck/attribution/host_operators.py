"""Finds host work other than dispatching: first-time work, operators that compute on the host, and evaluations."""

import re

import numpy as np

from tb_bottleneck.attribution.training_detection import has_training, is_training_name
from tb_bottleneck.base.arrays import distinct_values
from tb_bottleneck.base.intervals import EMPTY, Spans, merge, subtract, union
from tb_bottleneck.base.measure import Record
from tb_bottleneck.knowledge.catalogue import first_match, host_operator_patterns
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Bools, Ints, Rows, by_thread
from tb_bottleneck.trace.trace import Trace

# In thirty public recordings, 1 to 80 us pass between two calls that an operator makes, and up to 3 ms if the machine
# interrupts the operator. In all single pauses above 10 ms, code was compiled or a library was loaded.
FIRST_TIME_NS = 10_000_000
# Recurring calls of one operator may differ by a factor of 3, from which on the method also calls a step an outlier.
# First-time work has to differ by more.
OUTLIER = 5


def first_time_spans(trace: Trace, threads: Ints, is_mark: Bools) -> Spans:
    """Returns the long pauses in operators that do first-time work on `threads`, which are rows of the trace's threads.

    `is_mark` is a mask of the trace's names: True for names of training phases, which are no operators. First-time work
    is work that only one call of an operator does: TorchScript compiles a function in the call that needs it, and
    libraries create handles and tune inside an operator. The trace has no event for this work. It only shows a pause:
    time in the operator in which neither an inner operator nor a runtime call runs. The own time of this call is at
    least OUTLIER times as long as the own time of any other operator with the same name on the thread.

    A call of an operator counts only if a runtime call begins inside it: operators without runtime calls compute on the
    host (`host_operators_of`). It does not count if Python frames were recorded inside it, because these frames explain
    the time.
    """
    events = trace.events
    if not len(trace.calls) or not len(trace.all_device_ops):
        return EMPTY
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[~is_mark[events.name[rows]]]
    long = rows[events.duration[rows] >= FIRST_TIME_NS]
    spans = EMPTY
    for thread in np.intersect1d(threads, distinct_values(events.thread[long]), assume_unique=True).tolist():
        spans = merge(spans, _of_thread(trace, rows[events.thread[rows] == thread], thread))
    return spans


def _of_thread(trace: Trace, rows: Rows, thread: int) -> Spans:
    events, spans = trace.events, EMPTY
    inner = trace.rows(Kind.CPU_OP, Kind.CALL)
    inner = inner[events.thread[inner] == thread]
    own = nest(events.start[inner], events.end[inner]).self_times()[np.searchsorted(inner, rows)]
    long = np.flatnonzero(own >= FIRST_TIME_NS).tolist()
    if not long:
        return spans
    calls, frames = (_starts(trace, kind, thread) for kind in (Kind.CALL, Kind.PYTHON))
    for at in long:
        begin, end = int(events.start[rows[at]]), int(events.end[rows[at]])
        same = (events.name[rows] == events.name[rows[at]]) & (np.arange(len(rows)) != at)
        recurs = own[at] < OUTLIER * own[same].max(initial=0)
        if recurs or not _any_between(calls, begin, end) or _any_between(frames, begin, end):
            continue
        others = inner[(events.start[inner] >= begin) & (events.end[inner] <= end) & (inner != rows[at])]
        around = others[(events.start[others] == begin) & (events.end[others] == end) & (others < rows[at])]
        others = np.setdiff1d(others, around, assume_unique=True)
        alone = subtract(union(np.array([begin]), np.array([end])), union(events.start[others], events.end[others]))
        is_pause = alone.ends - alone.starts >= FIRST_TIME_NS
        spans = merge(spans, Spans(alone.starts[is_pause], alone.ends[is_pause]))
    return spans


def _starts(trace: Trace, kind: Kind, thread: int) -> Ints:
    rows = trace.rows(kind)
    starts: Ints = trace.events.start[rows[trace.events.thread[rows] == thread]]
    return starts


def _any_between(times: Ints, begin: int, end: int) -> bool:
    return bool(np.searchsorted(times, end) > np.searchsorted(times, begin))


# Dispatching one operator costs 1 to 5 us, and up to 80 us in slow recordings. In thirty public recordings of devices,
# the operators above 100 us without a runtime call fill, copy or compute tensors of the host; the others are those that
# knowledge/operators.toml lists as describing tensors.
SHORTEST_HOST_WORK_NS = 100_000
CREATES = "creates"
"""The label in knowledge/operators.toml of operators that write constant or random values."""


class HostOperators(Record, frozen=True, eq=False):
    """Operators that compute on the host although the run has a device, one element per operator.

    `rows` are event rows; `start` and `end` are in ns. Dispatching an operator takes microseconds, and the kernel that
    the operator launches does the work. A long operator that makes no runtime call launches nothing: its tensors are in
    host memory, and its time is work of the host. If the next work for the device is an upload, the operator makes a
    batch, and `makes_batch` is True.
    """

    rows: Rows
    start: Ints
    end: Ints
    makes_batch: Bools

    def spans(self, makes_batch: bool) -> Spans:
        """Returns the time of the operators that make a batch if `makes_batch` is True, otherwise of all others."""
        chosen = self.makes_batch == makes_batch
        return union(self.start[chosen], self.end[chosen])


def host_operators_of(trace: Trace, threads: Ints, fetches: Spans) -> HostOperators:
    """Returns the operators that compute on the host and run on `threads`.

    `threads` are the threads that launch work, as rows of the trace's threads. `fetches` is the time in which these
    threads fetch batches. Operators in this time are left out, because they belong to the loader. If no runtime call or
    no device work was recorded, returns no operators, because nothing shows which operators launch work.
    """
    events = trace.events
    rows = trace.rows(Kind.CPU_OP)
    if not len(trace.calls) or not len(trace.all_device_ops):
        rows = rows[:0]
    rows = rows[events.duration[rows] >= SHORTEST_HOST_WORK_NS]
    rows = rows[np.isin(events.thread[rows], threads)]
    rows = rows[name_matches(trace.names, events.name[rows], _computes)]
    rows = rows[~fetches.contains(events.start[rows]) & ~_calls_inside(trace, rows)]
    start, end = events.start[rows], events.end[rows]
    return HostOperators(rows, start, end, _uploaded_next(trace, threads, end, fetches))


def _computes(name: str) -> bool:
    return first_match(host_operator_patterns(), name) in ("computes", CREATES)


def _calls_inside(trace: Trace, rows: Rows) -> Bools:
    """Returns a mask of `rows` (event rows): True for operators during which their thread makes a runtime call."""
    events, calls = trace.events, trace.calls
    inside = np.zeros(len(rows), np.bool_)
    for thread in distinct_values(events.thread[rows]).tolist():
        own = events.thread[rows] == thread
        begins = np.sort(calls.start[calls.thread == thread])
        first = np.searchsorted(begins, events.start[rows[own]], side="left")
        inside[own] = np.searchsorted(begins, events.end[rows[own]], side="left") > first
    return inside


def _uploaded_next(trace: Trace, threads: Ints, times: Ints, fetches: Spans) -> Bools:
    """Returns a mask of `times` (ns): True if the next device work that `threads` issue after this time is an upload.

    It is False if one of the `fetches` (spans in which a batch is fetched) begins between the time and the upload.
    """
    calls, ops = trace.calls, trace.all_device_ops
    uploads = np.zeros(len(calls), np.bool_)
    uploads[ops.call[ops.launched & (ops.work == Work.UPLOAD)]] = True
    issues = np.flatnonzero(np.isin(calls.role, (Role.LAUNCH, Role.FILL, Role.COPY)) & np.isin(calls.thread, threads))
    issues = issues[np.argsort(calls.start[issues], kind="stable")]
    following = np.searchsorted(calls.start[issues], times, side="left")
    exists = following < len(issues)
    call = issues[np.minimum(following, len(issues) - 1)] if len(issues) else np.zeros(len(times), np.int64)
    fetch = np.searchsorted(fetches.starts, times, side="left")
    fetched = fetch < np.searchsorted(fetches.starts, np.where(exists, calls.start[call], times), side="left")
    return np.asarray(exists & uploads[call] & ~fetched, np.bool_)


# pytorch torch/nn/modules/module.py; eval() calls train(False), and train() calls itself for the children.
_EVAL = re.compile(r"torch/nn/modules/module\.py\(\d+\): eval$")
_TRAIN = re.compile(r"torch/nn/modules/module\.py\(\d+\): train$")


class InlineEvaluations(Record, frozen=True, eq=False):
    """Evaluations in order of time. `rows` has the event row of each call of `eval`, and `end` the start of the next
    call of `train` in ns."""

    rows: Rows
    end: Ints


def inline_evaluations(trace: Trace) -> InlineEvaluations:
    """Returns the evaluations on all threads, each from a call of `model.eval()` to the next call of `model.train()`.

    Python frames show both calls. Names of functions are not enough, because scripts often evaluate in the body of the
    training loop, or in a function whose name does not say that it evaluates.

    Two cases are left out. Without a later `train()`, the end is not known. If a backward pass or an optimizer runs in
    between, the time is training with some modules in evaluation mode, such as frozen normalisations.
    """
    events, evaluates = trace.events, _named(trace, _EVAL)
    if not evaluates.any() or not has_training(trace):
        none = np.empty(0, np.int64)
        return InlineEvaluations(none, none)
    frames, operators = trace.rows(Kind.PYTHON), trace.rows(Kind.CPU_OP, Kind.ANNOTATION)
    rows = frames[evaluates[events.name[frames]]]
    train = by_thread(frames[_named(trace, _TRAIN)[events.name[frames]]], events.thread)
    trained = np.array([is_training_name(name) for name in trace.names], np.bool_)
    backward = events.start[operators[trained[events.name[operators]]]]
    found, ends = [rows[:0]], [rows[:0]]
    for thread, own in by_thread(rows, events.thread).items():
        starts = events.start[train[thread]] if thread in train else rows[:0]
        following = np.searchsorted(starts, events.end[own])
        own, following = own[following < len(starts)], following[following < len(starts)]
        end = starts[following]
        is_evaluation = np.searchsorted(backward, end) == np.searchsorted(backward, events.start[own])
        found.append(own[is_evaluation])
        ends.append(end[is_evaluation])
    every, end = np.concatenate(found), np.concatenate(ends)
    order = np.argsort(every, kind="stable")  # rows are in order of time
    return InlineEvaluations(every[order], end[order])


def _named(trace: Trace, pattern: re.Pattern[str]) -> Bools:
    """Returns a mask of the names of `trace` in which `pattern` is found."""
    return np.array([pattern.search(name) is not None for name in trace.names], np.bool_)
