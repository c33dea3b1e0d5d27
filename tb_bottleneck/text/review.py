"""Formats the review of a logdir for a terminal. Names of files are untrusted. The texts of
notes contain no control characters, because they were cleaned when they were read."""

import re
from collections.abc import Iterator, Mapping, Sequence

from tb_bottleneck.base.units import share_text
from tb_bottleneck.bottlenecks.texts import cause_titles
from tb_bottleneck.report.figure_text import bounds_text, factor_text
from tb_bottleneck.report.memory_alert import worth_fixing
from tb_bottleneck.review.ledger import ENOUGH
from tb_bottleneck.review.notes import clean, names_of, state_of, together
from tb_bottleneck.schema import review_pb2 as pb
from tb_bottleneck.schema.bottleneck_pb2 import Finding, MemoryFinding, Report
from tb_bottleneck.sources.logdir import RecordingFile
from tb_bottleneck.text.document import wrapped
from tb_bottleneck.text.terminal import Layout

_MAX_UNREVIEWED = 20
_MONITOR_FOLDER = re.compile(r"/tb_bottleneck/[^/]+$")
_RESULTS = {"miss": "MISS", "as_predicted": "as predicted", "unknown": "unknown"}


def render(
    trainings: Sequence[Sequence[tuple[RecordingFile, Report]]],
    reviews: Mapping[RecordingFile, pb.Review],
    ledger: pb.Ledger,
    layout: Layout | None = None,
) -> str:
    """Returns the text of the review, fitted into `layout`: the number of open findings, the trainings with notes or
    findings, and the ledger (predicted and measured gains of fixes).

    Of the trainings without notes whose findings cost time, only the _MAX_UNREVIEWED costliest are shown. A training is
    a list of its recordings with their reports; the first report has its verdict and findings. `reviews` has the review
    of each recording that has one.
    """
    lines: list[str] = []
    total = still_open = 0
    costs = {at: _cost(members[0][1]) for at, members in enumerate(trainings) if not _notes(members, reviews)}
    unreviewed = sorted((at for at, cost in costs.items() if cost), key=lambda at: -costs[at])
    left_out = set(unreviewed[_MAX_UNREVIEWED:])
    for at, members in enumerate(trainings):
        recording, report = members[0]
        known = _notes(members, reviews)
        review = together(known)
        states = [state_of(review, finding.cause).state for finding in _findings(report)]
        total, still_open = total + len(states), still_open + states.count("open")
        if (states or known) and at not in left_out:
            lines += ["", *_recording(recording, report, review)]
    where = f"{len(trainings)} training{'s' if len(trainings) != 1 else ''}"
    count = f"{still_open} of {total} finding{'s' if total != 1 else ''} open in {where}"
    if left_out:
        lines += ["", f"{len(left_out)} more trainings have findings and no note: `tb-bottleneck list` shows them."]
    return (layout or Layout()).text([count, *lines, *_ledger(ledger)])


def _notes(
    members: Sequence[tuple[RecordingFile, Report]], reviews: Mapping[RecordingFile, pb.Review]
) -> list[pb.Review]:
    """Returns the reviews of those recordings in `members` that have one."""
    return [reviews[member] for member, _ in members if member in reviews]


def _cost(report: Report) -> float:
    """Returns the largest share of the time (0 to 1) that a finding of `report` costs; 0 without a finding."""
    return max((finding.cost_share for finding in report.findings), default=0.0)


def _recording(recording: RecordingFile, report: Report, review: pb.Review) -> Iterator[str]:
    """Yields the lines about one training. `recording` is its first recording, `report` the report of that recording,
    and `review` the merged review of all its recordings."""
    whole = state_of(review, "")
    yield clean(names_of(recording)[1])
    if whole.state != "open" or whole.reason:
        yield from wrapped(_standing(whole).strip(), "  ")
    yield from _comments(whole)
    for finding in _findings(report):
        state = state_of(review, finding.cause)
        yield from wrapped(f"{_standing(state)} {finding.cause}: {_title(finding)}", "  ")
        if state.cause:
            yield from _comments(state)


def _findings(report: Report) -> list[Finding | MemoryFinding]:
    """Returns the findings about the time and the memory findings that are worth fixing: the findings that the tab
    counts."""
    return [*report.findings, *worth_fixing(report.memory)]


def _title(finding: Finding | MemoryFinding) -> str:
    if isinstance(finding, MemoryFinding):
        return finding.title or finding.cause
    return f"{finding.title or finding.cause}, {share_text(finding.cost_share)} of the time"


def _standing(state: pb.ReviewState) -> str:
    """Returns the state of a finding or training, such as "[accepted by Ana (only for debugging)]"."""
    by = f" by {state.by}" if state.by else ""
    fixed_in = f" in {clean(state.fixed_in)}" if state.fixed_in else ""
    reason = f" ({state.reason})" if state.reason else ""
    return f"[{state.state}{fixed_in}{by}{reason}]"


def _comments(state: pb.ReviewState) -> Iterator[str]:
    """Yields the lines of the comments of a finding or training."""
    for comment in state.comments:
        yield from wrapped(f"{comment.by}: {comment.text}", "    ")


def _ledger(ledger: pb.Ledger) -> Iterator[str]:
    """Yields the lines about the ledger: its rows, and the accuracy of the predictions by cause. Yields nothing without
    rows."""
    if not ledger.rows:
        return
    yield from ("", "Ledger of fixes (step time before / after)")
    for row in ledger.rows:
        titles = ", ".join(cause_titles().get(cause, cause) if cause else "all findings" for cause in row.causes)
        what = ", with ".join(filter(None, (titles, row.change)))
        gains = f"{_gain(row, 'expected', 'predicted')}, {_gain(row, 'measured', 'measured')}"
        yield from wrapped(f"{_result(row)}{gains}. {what}: {_shown(row.run)} → {_shown(row.fixed_in)}", "  ")
        if row.because:
            yield from wrapped(row.because, "    ")
    yield from (line for each in ledger.causes for line in wrapped(_accuracy(each), "  "))


def _accuracy(each: pb.LedgerCause) -> str:
    """Returns a sentence that says how accurate the predictions for one cause were in this logdir."""
    found = f"{each.inside} of {each.measured} inside the predicted interval, error {share_text(each.median_error)}"
    few = "" if each.measured >= ENOUGH else f"; {ENOUGH} measurements are needed to expect the same of the next one"
    return f"Predictions for {cause_titles().get(each.cause, each.cause)}: {found} in the median{few}"


def _result(row: pb.LedgerRow) -> str:
    """Returns the result of a row as the beginning of its line, such as "MISS: ". Returns an empty text for a trial
    without a prediction."""
    unpredicted = row.HasField("measured") and not row.HasField("expected")
    return "" if unpredicted else f"{_RESULTS[row.result]}: "


def _shown(run: str) -> str:
    """Returns the name of a run without the folder that the monitor creates in the directory of the run."""
    return _MONITOR_FOLDER.sub("", clean(run))


def _gain(row: pb.LedgerRow, field: str, word: str) -> str:
    """Returns the gain in `field` ("expected" or "measured") as text that ends in `word`, such as "1.7x (1.3 to 1.8)
    predicted"; "not predicted" if it is not known."""
    if not row.HasField(field):
        return f"not {word}"
    gain: pb.Gain = getattr(row, field)
    return f"{factor_text(gain.speedup)} ({bounds_text(gain.low, gain.high)}) {word}"
