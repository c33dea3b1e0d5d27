"""The ledger of fixes: the gain that was predicted for a finding, next to the gain in the run that fixed it."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tb_bottleneck.comparison.compare import compare_runs
from tb_bottleneck.comparison.runs.report_comparison import run_of
from tb_bottleneck.comparison.texts.value_text import RELEVANT_CHANGE
from tb_bottleneck.review.notes import STATE_OF, Action, Note
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.schema.review_pb2 import Gain, Ledger, LedgerRow

MAX_FIXES = 50  # the latest ones
_ORDER = ("miss", "as_predicted", "unknown")


@dataclass(frozen=True)
class Fix:
    """The findings of a run that are stated to be fixed in another run. An empty cause stands for all findings."""

    subject: str
    fixed_in: str
    causes: tuple[str, ...]
    writer: str
    measured: Gain | None = None
    """The gain that a trial measured; without one, it follows from the reports of both runs."""


def fixes_of(notes: Sequence[Note]) -> list[Fix]:
    """Returns the fixes that still hold, the latest last. `notes` are in order."""
    latest: dict[tuple[str, str], Note] = {}
    for note in notes:
        if note.action not in STATE_OF:
            continue
        # A note about the run as a whole replaces those about its findings; the latest one goes to the end.
        replaced = [key for key in latest if key[0] == note.subject and note.cause in ("", key[1])]
        for key in replaced:
            del latest[key]
        latest[note.subject, note.cause] = note
    together: dict[tuple[str, str], list[Note]] = {}
    for note in latest.values():
        if note.action is Action.FIXED:
            together.setdefault((note.subject, note.fixed_in), []).append(note)
    fixes = [
        Fix(*key, tuple(note.cause for note in same), same[-1].writer, measured_in(same[-1].text))
        for key, same in together.items()
    ]
    return fixes[-MAX_FIXES:]


_MEASURED = re.compile(r"^measured ([0-9.]{1,12})x \(([0-9.]{1,12}) to ([0-9.]{1,12})\)", re.ASCII)


def measured_text(gain: float, low: float, high: float, change: str) -> str:
    """Returns the text of a note about a measured gain."""
    return f"measured {gain:.4f}x ({low:.4f} to {high:.4f}): {change}"


def measured_in(text: str) -> Gain | None:
    """Returns the gain in the text of a note; None if there is none, or an impossible one."""
    found = _MEASURED.match(text)
    try:
        gain = _gain(*map(float, found.groups())) if found else None
    except ValueError:
        return None
    return gain if isinstance(gain, Gain) else None


def ledger(fixes: Iterable[Fix], report_of: Callable[[str], pb.Report | None]) -> Ledger:
    """Returns the ledger. `report_of` returns the report of a run or recording, or None if that is gone."""
    rows: list[LedgerRow] = [_row(fix, report_of(fix.subject), report_of(fix.fixed_in)) for fix in fixes]
    rows.sort(key=_order)
    return Ledger(rows=rows)


def _row(fix: Fix, before: pb.Report | None, after: pb.Report | None) -> LedgerRow:
    row = LedgerRow(run=fix.subject, causes=fix.causes, fixed_in=fix.fixed_in, by=fix.writer, result="unknown")
    missing = [name for name, report in ((fix.subject, before), (fix.fixed_in, after)) if report is None]
    if before is None or after is None:
        row.because = f"There is no recording of {' and '.join(missing)} any more."
        return row
    expected = _expected(before, fix.causes)
    if isinstance(expected, Gain):
        row.expected.CopyFrom(expected)
    else:
        row.because = expected
    measured = fix.measured or _measured(before, after)
    if isinstance(measured, Gain):
        row.measured.CopyFrom(measured)
    else:
        row.because = measured
    if row.HasField("expected") and row.HasField("measured"):
        overlap = row.measured.low <= row.expected.high and row.expected.low <= row.measured.high
        row.result = "as_predicted" if overlap else "miss"
    return row


def _expected(report: pb.Report, causes: Sequence[str]) -> Gain | str:
    """Returns the predicted gain of fixing these causes together, or why there is none."""
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


def _measured(before: pb.Report, after: pb.Report) -> Gain | str:
    """Returns the ratio of the mean steps of the whole runs if their telemetry is known, otherwise of the typical steps
    with their noise; or why they cannot be compared.

    A fix of something rare changes the mean, not the typical step.
    """
    runs = before.unprofiled.run_step_ns, after.unprofiled.run_step_ns
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
    """Returns the gain; or, for numbers that no analysis computes but a saved report may contain, why there is none."""
    if not all(map(math.isfinite, (speedup, low, high))) or speedup <= 0:
        return "The report has an impossible gain."
    return Gain(speedup=speedup, low=low, high=high)


def _order(row: LedgerRow) -> tuple[int, float]:
    """The key by which misses come first, the largest first."""
    both = row.HasField("expected") and row.HasField("measured")
    distance = abs(math.log(row.measured.speedup / row.expected.speedup)) if both else 0.0
    return _ORDER.index(row.result), -distance
