"""The ledger: for each fix, the gain that was predicted, and the gain that was measured, either by a trial or by
comparing the run with the fix.

A gain is the factor step time before / step time after, with an interval.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from tb_bottleneck.comparison.compare import compare_runs
from tb_bottleneck.comparison.runs.runs_from_reports import run_of
from tb_bottleneck.comparison.texts.value_text import RELEVANT_CHANGE
from tb_bottleneck.review.notes import STATE_OF, Action, Note
from tb_bottleneck.review.trial_notes import trial_gain
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.schema.review_pb2 import Gain, Ledger, LedgerCause, LedgerRow

MAX_FIXES = 50  # the latest ones
ENOUGH = 8
"""Smallest number of measured fixes of a cause that shows how accurate its next prediction will be."""
_ORDER = ("miss", "as_predicted", "unknown")


@dataclass(frozen=True)
class Fix:
    """A statement that a run fixes findings of another run, or a trial: a measurement of a change by `tb-bottleneck
    try`.

    `subject` is the run or recording that has the findings, `fixed_in` the run or recording that fixes them. `causes`
    are the causes of the fixed findings. The cause "" stands for all findings of `subject`. `causes` is an empty tuple
    for a trial of a change that no finding suggested. `writer` is the name that the reviewer stated.
    """

    subject: str
    fixed_in: str
    causes: tuple[str, ...]
    writer: str
    measured: Gain | None = None
    """The gain that a trial measured. None for a stated fix: its gain follows from the reports of both runs."""
    change: str = ""
    """What the trial changed; empty for a stated fix."""


def fixes_of(notes: Sequence[Note]) -> list[Fix]:
    """Returns the fixes that no later note about the same finding replaces, followed by the trials. Of both together,
    only the last MAX_FIXES are returned. A measurement of a stated fix is no trial. `notes` are sorted by time."""
    latest: dict[tuple[str, str], Note] = {}
    trials = []
    for note in notes:
        if note.action is Action.TRIED and (found := _trial(note)) is not None:
            trials.append(found)
        if note.action not in STATE_OF:
            continue
        # A note about the run as a whole replaces the notes about its findings. The new note goes to the end of
        # `latest`.
        replaced = [key for key in latest if key[0] == note.subject and note.cause in ("", key[1])]
        for key in replaced:
            del latest[key]
        latest[note.subject, note.cause] = note
    together: dict[tuple[str, str], list[Note]] = {}
    for note in latest.values():
        if note.action is Action.FIXED:
            together.setdefault((note.subject, note.fixed_in), []).append(note)
    fixes = [Fix(*key, tuple(note.cause for note in same), same[-1].writer) for key, same in together.items()]
    stated = {(fix.subject, fix.fixed_in) for fix in fixes}
    return [*fixes, *(trial for trial in trials if (trial.subject, trial.fixed_in) not in stated)][-MAX_FIXES:]


def _trial(note: Note) -> Fix | None:
    """Returns the trial that `note` describes, or None if its text has no gain, or an impossible one."""
    found = trial_gain(note.text)
    if found is None:
        return None
    gain = Gain(speedup=found.expected, low=found.low, high=found.high)
    return Fix(note.subject, note.fixed_in, (note.cause,) if note.cause else (), note.writer, gain, found.assumes)


def ledger(fixes: Iterable[Fix], report_of: Callable[[str], pb.Report | None]) -> Ledger:
    """Returns the ledger with one row per fix, the largest misses first, and a summary per cause. A miss is a fix whose
    measured interval and predicted interval do not overlap.

    `report_of` returns the report of a run or recording by name, or None if that recording no longer exists.
    """
    rows: list[LedgerRow] = [_row(fix, report_of(fix.subject), report_of(fix.fixed_in)) for fix in fixes]
    rows.sort(key=_order)
    return Ledger(rows=rows, causes=_by_cause(rows))


def _by_cause(rows: Iterable[LedgerRow]) -> list[LedgerCause]:
    """Returns for each cause how accurate its predictions were; the cause with the most measurements first. Only rows
    with one cause count."""
    gains: dict[str, list[tuple[Gain, Gain]]] = {}
    for row in rows:
        if len(row.causes) == 1 and row.causes[0] and _is_complete(row):
            gains.setdefault(row.causes[0], []).append((row.expected, row.measured))
    found = [
        LedgerCause(
            cause=cause,
            measured=len(pairs),
            inside=sum(expected.low <= measured.speedup <= expected.high for expected, measured in pairs),
            median_error=median(abs(measured.speedup / expected.speedup - 1) for expected, measured in pairs),
        )
        for cause, pairs in gains.items()
    ]
    return sorted(found, key=lambda each: (-each.measured, each.cause))


def _is_complete(row: LedgerRow) -> bool:
    """Returns True if the row has a predicted and a measured gain."""
    return row.HasField("expected") and row.HasField("measured")


def _row(fix: Fix, before: pb.Report | None, after: pb.Report | None) -> LedgerRow:
    """Returns the row of `fix`. `before` is the report of the run with the findings, `after` that of the run with the
    fix; None if the recording no longer exists."""
    row = LedgerRow(
        run=fix.subject, causes=fix.causes, fixed_in=fix.fixed_in, by=fix.writer, change=fix.change, result="unknown"
    )
    missing = [name for name, report in ((fix.subject, before), (fix.fixed_in, after)) if report is None]
    gone = f"There is no recording of {' and '.join(missing)} any more."
    if not fix.causes:
        expected: Gain | str = "No finding suggested this change."
    else:
        expected = gone if before is None else _expected(before, fix.causes)
    if isinstance(expected, Gain):
        row.expected.CopyFrom(expected)
    else:
        row.because = expected
    measured = fix.measured or (gone if before is None or after is None else measured_gain(before, after))
    if isinstance(measured, Gain):
        row.measured.CopyFrom(measured)
    else:
        row.because = measured
    if _is_complete(row):
        overlap = row.measured.low <= row.expected.high and row.expected.low <= row.measured.high
        row.result = "as_predicted" if overlap else "miss"
    return row


def _expected(report: pb.Report, causes: Sequence[str]) -> Gain | str:
    """Returns the predicted gain of fixing all `causes`, or a sentence that says why no gain is known. `report` is the
    report of the run in which they were found. An empty cause stands for the whole plan."""
    if len(causes) == 1 and causes[0]:
        finding = next((finding for finding in report.findings if finding.cause == causes[0]), None)
        if finding is None and any(finding.cause == causes[0] for finding in report.memory.findings):
            return "A finding about the memory has no gain of time."
        if finding is None:
            return "The report of the first run does not contain this finding."
        speedup = finding.speedup
        if speedup.basis not in ("replay", "estimate"):
            return speedup.because or "No gain was simulated for this finding."
        return _gain(speedup.expected, speedup.low, speedup.high)
    # Gains of single fixes do not multiply; the plan simulates its first steps together.
    plan = list(report.plan)
    for count in range(1, len(plan) + 1):
        whole = "" in causes and count == len(plan)
        if whole or {step.cause for step in plan[:count]} == set(causes):
            last = plan[count - 1]
            return _gain(last.speedup_total, last.low, last.high)
    return "These fixes were not simulated together."


def measured_gain(before: pb.Report, after: pb.Report) -> Gain | str:
    """Returns the measured gain, or a sentence with the reason why the runs cannot be compared. `before` and `after`
    are the reports of the run without and with the fix.

    The gain is the ratio of the mean step times of the whole runs if these are known from telemetry. The mean is used
    because a fix of a rare problem changes the mean, but not the typical step. Otherwise the gain is the ratio of the
    typical step times, and their noise gives the interval.
    """
    runs = [
        report.window.step_ns.mean if report.window.basis == "step_clock" else report.unprofiled.run_step_ns
        for report in (before, after)
    ]
    if all(map(math.isfinite, runs)) and min(runs) > 0:
        speedup = runs[0] / runs[1]
        return _gain(speedup, speedup / (1 + RELEVANT_CHANGE), speedup * (1 + RELEVANT_CHANGE))
    copies = [pb.Report(), pb.Report()]
    for copy, report in zip(copies, (before, after), strict=True):
        copy.CopyFrom(report)
    names = "The first run", "The run with the fix"
    comparison = compare_runs(*(run_of(name, [copy]) for name, copy in zip(names, copies, strict=True)))
    if not comparison.comparable:
        return comparison.headline
    measured = comparison.unprofiled if comparison.HasField("unprofiled") else comparison
    if measured.noise >= 1:
        return "The steps of these runs vary too much to measure the gain: their noise is larger than the difference."
    speedup, margin = measured.speedup, measured.speedup * measured.noise
    return _gain(speedup, speedup - margin, speedup + margin)


def _gain(speedup: float, low: float, high: float) -> Gain | str:
    """Returns the gain as a message, or a sentence if a number is not finite or `speedup` is not positive. No analysis
    computes such numbers, but a saved report may contain them."""
    if not all(map(math.isfinite, (speedup, low, high))) or speedup <= 0:
        return "The report has an impossible gain."
    return Gain(speedup=speedup, low=low, high=high)


def _order(row: LedgerRow) -> tuple[int, float]:
    """Returns the sort key of a row: by result in the order of _ORDER, then by the difference of measured and expected
    gain, the largest first."""
    distance = abs(math.log(row.measured.speedup / row.expected.speedup)) if _is_complete(row) else 0.0
    return _ORDER.index(row.result), -distance
