"""Measures of interruptions of the steady steps: checkpoints, logging, evaluation, garbage collection, and first runs
(code that runs for the first time, and is compiled, loaded or tuned)."""

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.attribution.training_detection import has_training
from tb_bottleneck.base.arrays import distinct_values
from tb_bottleneck.base.intervals import Spans, clip, union
from tb_bottleneck.base.measure import Measure, Missing, Record, text_measure
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.knowledge.catalogue import activity_patterns, first_match
from tb_bottleneck.measures.trace.uneven_steps import first_runs_of
from tb_bottleneck.measures.trace.window_rows import host_rows, host_step_of, with_example
from tb_bottleneck.trace.kernel_names import cut
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Bools, Ints, Rows

# Words in the names of interrupting rows, in lower case, by kind of interruption. The first match counts.
INTERRUPTION_KINDS = {
    "collection": ("python gc", "function collect"),
    "logging": ("tensorboard", "wandb", "mlflow", "matplotlib"),
    "checkpoint": ("serialization.py", "checkpoint", "safetensors", "save"),
    "evaluation": ("eval", "valid", "val_"),
}
# An interruption of only one step may never recur.
MIN_RECURRING_STEPS = 2
_NO_FRAMES = Missing("Python frames were not recorded; with_stack=True records them")
_NOTHING = Missing("no interruption was recorded")


class Interruptions(Record, frozen=True, eq=False):
    """Interruptions in order of time. Each array has one element per interruption. `rows` are event rows, `begin` and
    `end` are in ns.

    `kind` is an index into INTERRUPTION_KINDS, or len(INTERRUPTION_KINDS) for other kinds. `end` is the end of the
    event. If the event is only the beginning of an evaluation, `end` is the end of the evaluation.
    """

    rows: Rows
    kind: Ints
    begin: Ints
    end: Ints

    def of(self, kind: str) -> "Interruptions":
        """Returns the interruptions of `kind`, a key of INTERRUPTION_KINDS."""
        return self._where(self.kind == list(INTERRUPTION_KINDS).index(kind))

    def costliest(self) -> "Interruptions":
        """Returns the interruptions of the kind with the most time in total."""
        if not len(self.rows):
            return self
        costs = np.bincount(self.kind, weights=self.end - self.begin)
        return self._where(self.kind == int(np.argmax(costs)))

    def spans(self) -> Spans:
        """Returns the union of the interruptions' time intervals."""
        return union(self.begin, self.end)

    def _where(self, mask: Bools) -> "Interruptions":
        return Interruptions(self.rows[mask], self.kind[mask], self.begin[mask], self.end[mask])


def checkpoints(recording: Recording) -> Measure | Missing:
    """Time of the window in which checkpoints are written (ns). The `count` of the measure is the number of
    checkpoints."""
    return _time_in(recording, "checkpoint")


def log_writes(recording: Recording) -> Measure | Missing:
    """Time of the window in which logs are written (ns). The `count` of the measure is the number of writes."""
    return _time_in(recording, "logging")


def garbage_collections(recording: Recording) -> Measure | Missing:
    """Time of the window in which Python collects garbage (ns). The `count` of the measure is the number of
    collections."""
    return _time_in(recording, "collection")


def evaluations(recording: Recording) -> Measure | Missing:
    """Time of the window in which the model is evaluated (ns). The `count` of the measure is the number of
    evaluations."""
    return _time_in(recording, "evaluation")


def interruption_time(recording: Recording) -> Measure | Missing:
    """Time of the window in which the device is idle because of an interruption (ns): the time of the regime
    `interruption`."""
    return Measure(float(recording.account.ns[Regime.INTERRUPTION]), "ns", "window")


def first_runs(recording: Recording) -> Measure | Missing:
    """Time of the window in which the device waits for code that runs for the first time and is compiled, loaded or
    tuned (ns)."""
    begin, end, time = first_runs_of(recording)
    return with_example(float(time.sum()), "ns", "window", begin, end)


def first_runs_once(recording: Recording) -> Measure | Missing:
    """Share of the window in first runs (code that runs for the first time), if fewer than MIN_RECURRING_STEPS steps
    have first runs or the recording has no steps; otherwise 0.

    First runs in several steps may occur in all steps, for example if torch.compile meets new shapes. First runs in one
    step are a start-up.
    """
    begin, end, time = first_runs_of(recording)
    steps = np.searchsorted(recording.steps.edges, begin, side="right")
    once = len(distinct_values(steps)) < MIN_RECURRING_STEPS
    share = float(time.sum()) / recording.account.window if once else 0.0
    return with_example(share, "share", "window", begin, end)


def costliest_interruption(recording: Recording) -> Measure | Missing:
    """The name of the event with the most time among the interruptions of the kind with the most time, as text."""
    found, events = interruptions_of(recording).costliest(), recording.trace.events
    if not len(found.rows):
        return _NOTHING
    lengths = found.end - found.begin
    totals, longest = np.bincount(events.name[found.rows], weights=lengths), np.argmax(lengths)
    name = cut(recording.trace.names[int(np.argmax(totals))])
    return text_measure(name, len(found.rows), int(found.begin[longest]), int(found.end[longest]))


def steps_between_interruptions(recording: Recording) -> Measure | Missing:
    """The median number of steps from one interruption of the kind with the most time to the next."""
    found = interruptions_of(recording).costliest()
    if not len(found.rows):
        return _NOTHING
    steps = _steps_with(recording, found.rows)
    if len(steps) < 2:
        return Missing(f"it occurred once in {len(recording.steps)} steps; record more steps to know how often")
    distance = float(np.median(np.diff(steps)))
    return with_example(distance, "count", "interruption", found.begin, found.end)


def usual_step(recording: Recording) -> Measure | Missing:
    """The mean time (ns) of a step without an interruption of the kind with the most time.

    Missing if steps with such an interruption take no longer.
    """
    return _step_time(recording, interrupted=False)


def interrupted_step(recording: Recording) -> Measure | Missing:
    """The mean time (ns) of a step with an interruption of the kind with the most time."""
    return _step_time(recording, interrupted=True)


@memoized
def interruptions_of(recording: Recording) -> Interruptions:
    """Returns the interruptions that overlap the host's steps. An interruption inside another one is left out."""
    trace, events = recording.trace, recording.trace.events
    training = has_training(trace)
    patterns = {
        Kind.ANNOTATION: activity_patterns("annotation", training),
        Kind.PYTHON: activity_patterns("python", training),
    }
    by_kind = [
        host_rows(recording, lambda name, rules=rules: first_match(rules, name) == "interrupt", kind)  # type: ignore[misc]
        for kind, rules in patterns.items()
    ]
    inline, host = recording.host.inline_evaluations, recording.steps.host
    begun = (inline.end > host[0]) & (events.start[inline.rows] < host[-1])
    rows = np.concatenate((*by_kind, inline.rows[begun]))
    end = np.concatenate((*(events.end[each] for each in by_kind), inline.end[begun]))
    order = np.argsort(rows, kind="stable")
    rows, end = rows[order], end[order]
    begin = events.start[rows]
    outermost = begin >= np.maximum.accumulate(np.append(np.int64(-(2**62)), end))[:-1]
    rows = rows[outermost]
    kind = np.array([_kind(trace.names[name]) for name in events.name[rows].tolist()], np.int64)
    return Interruptions(rows, kind, begin[outermost], end[outermost])


def _kind(name: str) -> int:
    """Returns the index in INTERRUPTION_KINDS for the name of an event, or len(INTERRUPTION_KINDS) if no word
    matches."""
    matches = [any(word in name.lower() for word in words) for words in INTERRUPTION_KINDS.values()]
    return matches.index(True) if any(matches) else len(INTERRUPTION_KINDS)


def _time_in(recording: Recording, kind: str) -> Measure | Missing:
    """Returns the time of the window in interruptions of `kind`, a key of INTERRUPTION_KINDS. Missing if there are none
    and Python frames were not recorded."""
    found, host = interruptions_of(recording).of(kind), recording.steps.host
    if not len(found.rows) and not recording.trace.header.stacks_recorded:
        return _NO_FRAMES
    spans = clip(found.spans(), int(host[0]), int(host[-1]))
    return with_example(float(spans.total()), "ns", "window", found.begin, found.end)


def _steps_with(recording: Recording, rows: Rows) -> Ints:
    """Returns the distinct numbers of the steps in which the event rows `rows` begin."""
    steps = host_step_of(recording, recording.trace.events.start[rows])
    return np.asarray(distinct_values(steps[(steps >= 0) & (steps < len(recording.steps))]), np.int64)


def _step_time(recording: Recording, interrupted: bool) -> Measure | Missing:
    """Returns the mean time of the steps with an interruption of the kind with the most time if `interrupted` is True,
    otherwise of the steps without one."""
    steps, length = np.zeros(len(recording.steps), np.bool_), recording.steps.durations
    steps[_steps_with(recording, interruptions_of(recording).costliest().rows)] = True
    if not steps.any() or steps.all():
        return Missing("every step is interrupted" if steps.any() else "no interruption begins in the window")
    if length[steps].mean() <= length[~steps].mean():
        return Missing("the steps differ by more than the time of an interruption")
    chosen = np.flatnonzero(steps == interrupted)
    begin, end = recording.steps.edges[chosen], recording.steps.edges[chosen + 1]
    return with_example(float((end - begin).mean()), "ns", "step", begin, end)
