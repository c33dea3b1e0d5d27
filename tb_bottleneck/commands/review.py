"""`tb-bottleneck review`: writes notes about runs and findings to the logdir, and shows their merged state."""

import argparse
import os
import sys
from typing import TYPE_CHECKING

from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.commands.arguments import add_subparser
from tb_bottleneck.commands.recordings import print_problems
from tb_bottleneck.commands.terminal import progress_bar, stdout_layout

if TYPE_CHECKING:
    from tb_bottleneck.commands import Subparsers
    from tb_bottleneck.schema.bottleneck_pb2 import Report
    from tb_bottleneck.sources.logdir import RecordingFile

REVIEWER_VARIABLE = "TB_BOTTLENECK_REVIEWER"
"""Environment variable with the name of the reviewer. The option --as takes precedence."""

EXAMPLES = """\
examples:
  tb-bottleneck review runs                               states, open findings and the ledger of fixes
  export TB_BOTTLENECK_REVIEWER=Ana                       who writes; nothing is taken from the system
  tb-bottleneck review runs accept resnet/debug --cause loader_in_main_process --because "only for debugging"
  tb-bottleneck review runs fixed resnet/slow --cause loader_in_main_process --in resnet/workers
  tb-bottleneck review runs reopen resnet/slow --cause loader_in_main_process --because "slow again since Monday"
  tb-bottleneck review runs comment resnet/slow "the loader reads from NFS"
  tb-bottleneck review runs --json                        the ledger of fixes and trials

RUN is the name of a run under LOGDIR, as the tab shows it, or RUN/FILE for one recording of it. Without --cause, a note
is about the run as a whole and all of its findings. Notes are only added, never changed: the latest one decides. They
are stored in LOGDIR/.tb_bottleneck_review, in a file of its own for each call, so that nothing is lost if several
people write at once. The ledger compares the predicted gain of a fix with the step times of the run that has it, or
with what `tb-bottleneck try` measured.
"""
_SUMMARIES = {
    "accept": "accept a finding as it is, with the reason",
    "fixed": "state which run fixed a finding",
    "reopen": "set the state of a finding to open again",
    "comment": "add a comment",
}


def add(commands: "Subparsers") -> None:
    """Adds the command with its arguments to `commands`, the subparsers of the command line."""
    review = add_subparser(
        commands,
        "review",
        "record and show what a team states about runs and findings",
        "Shows the state and the comments of runs and findings, and the ledger of fixes: predicted gains "
        "next to measured ones. With ACTION, adds a note to the logdir; the tab shows it a few seconds later.",
        EXAMPLES,
    )
    review.add_argument("logdir", metavar="LOGDIR", help="the --logdir (or --logdir_spec) of TensorBoard")
    review.add_argument("--json", action="store_true", help="print the ledger as one JSON object")
    review.set_defaults(run=_show)
    actions = review.add_subparsers(
        title="actions", metavar="ACTION", help="the note to add; without it, nothing is written"
    )
    for name, summary in _SUMMARIES.items():
        action = actions.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        action.add_argument("subject", metavar="RUN", help="the name of a run under LOGDIR, or RUN/FILE")
        if name == "comment":
            action.add_argument("text", metavar="TEXT", help="the comment")
        if name in ("accept", "fixed", "reopen"):
            action.add_argument("--because", dest="text", default="", required=name == "accept", help="the reason")
        if name == "fixed":
            action.add_argument("--in", dest="fixed_in", required=True, metavar="RUN", help="the run with the fix")
        action.add_argument("--cause", default="", help="the cause of the finding (default: the run as a whole)")
        action.add_argument(
            "--as", dest="writer", metavar="NAME", help=f"who writes the note (default: ${REVIEWER_VARIABLE})"
        )
        action.set_defaults(run=_write, action=name)


def _write(options: argparse.Namespace) -> int:
    from tb_bottleneck.review.notes import Action, clean
    from tb_bottleneck.review.store import NoteWriter
    from tb_bottleneck.review.subjects import cause_of, name_in, root_of, roots_of, subject_of
    from tb_bottleneck.sources.logdir import scan_all

    logdir, action = options.logdir, Action(options.action)
    writer = clean(options.writer or os.environ.get(REVIEWER_VARIABLE, ""))
    if not writer:
        raise NotFound(f"who writes this note? Add --as NAME, or set {REVIEWER_VARIABLE}; the system is not asked")
    if action in (Action.ACCEPT, Action.COMMENT) and not clean(options.text):
        raise NotFound(f"the text of `{action.value}` is empty")
    roots = roots_of(logdir)
    recordings = scan_all(roots).recordings
    subject = subject_of(options.subject, logdir, recordings)
    root = root_of(subject, roots)
    fixed_in = subject_of(options.fixed_in, logdir, recordings) if action is Action.FIXED else ""
    if fixed_in == subject:
        raise NotFound(f"--in names the run in which a finding is fixed, but {subject} is the run that has it")
    cause = cause_of(options.cause)
    notes = NoteWriter(root.path, writer)
    try:
        inner = name_in(root, subject, logdir)
        inner_fix = fixed_in and name_in(root, fixed_in, logdir)
        notes.write(action, inner, cause=cause, text=options.text, fixed_in=inner_fix)
        related = not fixed_in or _may_be_same_work(subject, fixed_in, recordings)
        gain = _gain_text(subject, fixed_in, recordings) if fixed_in and cause and related else ""
        if gain:
            notes.write(Action.TRIED, inner, cause=cause, text=gain, fixed_in=inner_fix)
    except OSError as error:
        because = error.strerror or error
        print(f"tb-bottleneck: the note could not be written to {notes.path}: {because}", file=sys.stderr)
        return 1
    except ValueError as error:
        raise NotFound(str(error)) from error
    finally:
        notes.close()
    print(f"{action.value} {clean(subject)}{f', {cause}' if cause else ''}: written to {notes.path}")
    if gain:
        print(f"measured: {gain}")
    if cause:
        _warn_if_absent(cause, subject, recordings)
    return 0


def _gain_text(subject: str, fixed_in: str, recordings: "tuple[RecordingFile, ...]") -> str:
    """Returns the gain from the run `subject` to the run `fixed_in` as the text of a note, so that it replaces the
    predicted gain; empty if the runs cannot be compared or have other batch sizes. `recordings` are those under the
    logdir."""
    from tb_bottleneck.review.ledger import measured_gain
    from tb_bottleneck.review.notes import by_name, names_of
    from tb_bottleneck.review.trial_notes import trial_text

    runs = (subject, fixed_in)  # their telemetry is in folders below
    own = tuple(
        each for each in recordings if any(run in names_of(each) or each.run.startswith(f"{run}/") for run in runs)
    )
    reports = dict(member for members in _trainings(_reports(own)) for member in members)
    named = by_name(own)
    if not named.keys() >= set(runs):
        return ""
    before, after = (reports[named[run]] for run in runs)
    samples = [report.efficiency.samples_per_step for report in (before, after)]
    gain = measured_gain(before, after)
    return (
        ""
        if isinstance(gain, str) or (all(samples) and samples[0] != samples[1])
        else trial_text(gain.speedup, gain.low, gain.high, f"the fix in {fixed_in}")
    )


def _warn_if_absent(cause: str, subject: str, recordings: "tuple[RecordingFile, ...]") -> None:
    """Prints a warning on stderr if no report of the run `subject` has a finding with the cause `cause`. `recordings`
    are the recordings under the logdir. It is no error, because the run may have had this finding before."""
    own = tuple(each for each in recordings if subject in (each.run, f"{each.run}/{each.source}"))
    reports = _reports(own).values()
    if any(report.world_size > 1 for report in reports):
        return  # findings of the job as a whole are not in the reports of its ranks
    found = {finding.cause for report in reports for finding in report.findings}
    found |= {finding.cause for report in reports for finding in report.memory.findings}
    if cause not in found:
        known = f"its findings are {', '.join(sorted(found))}" if found else "it has no finding"
        print(f"tb-bottleneck: {subject} does not have the finding {cause} now; {known}", file=sys.stderr)


def _may_be_same_work(subject: str, fixed_in: str, recordings: "tuple[RecordingFile, ...]") -> bool:
    """Returns False, and prints a warning on stderr, if the newest traces of the runs `subject` and `fixed_in` show
    different work. `recordings` are the recordings under the logdir."""
    from tb_bottleneck.comparison.compare import compare_runs
    from tb_bottleneck.comparison.runs.compared_run import open_recordings
    from tb_bottleneck.comparison.texts.headline import may_be_same_work
    from tb_bottleneck.sources.telemetry.event_files import is_event_file

    runs = []
    for name in (subject, fixed_in):
        own = [each for each in recordings if name in (each.run, f"{each.run}/{each.source}")]
        traces = [each for each in own if not each.is_snapshot and not is_event_file(each.path)]
        if not traces:
            return True
        newest = max(traces, key=lambda each: (each.mtime_ns, each.path))
        runs.append(open_recordings(name, [newest.path]))
    comparison = compare_runs(*runs)
    if may_be_same_work(comparison):
        return True
    print(
        f"tb-bottleneck: is {fixed_in} the run with the fix? Its work is not that of {subject}. {comparison.headline}",
        file=sys.stderr,
    )
    return False


def _show(options: argparse.Namespace) -> int:
    from tb_bottleneck.report.json_form import as_json
    from tb_bottleneck.review.ledger import fixes_of, ledger
    from tb_bottleneck.review.notes import by_name, reviews_of
    from tb_bottleneck.review.store import read_all
    from tb_bottleneck.review.subjects import roots_of
    from tb_bottleneck.sources.logdir import scan_all
    from tb_bottleneck.text.review import render

    roots = roots_of(options.logdir)
    listing, merged = scan_all(roots), read_all(roots)
    if not listing.recordings:
        raise NotFound(f"no recording was found under {options.logdir}, so there is nothing to review")
    print_problems([*listing.problems, *merged.problems])
    trainings = _trainings(_reports(listing.recordings))
    reports = dict(member for members in trainings for member in members)
    named = by_name(listing.recordings)
    rows = ledger(fixes_of(merged.notes), lambda name: reports.get(named[name]) if name in named else None)
    if options.json:
        print(as_json(rows))
        return 0
    reviews = reviews_of(merged.notes, listing.recordings, comments=None)
    print(render(trainings, reviews, rows, stdout_layout()), end="")
    return 0


def _trainings(reports: "dict[RecordingFile, Report]") -> "list[list[tuple[RecordingFile, Report]]]":
    """Returns the recordings of each training with their joined reports. The report with the verdict is first."""
    from tb_bottleneck.report.cross_check import join
    from tb_bottleneck.report.trainings import trainings_of

    directories = [os.path.dirname(recording.path) for recording in reports]
    joined = join(zip(directories, reports.values(), strict=True))
    members = list(zip(reports, joined, strict=True))
    trainings = trainings_of(list(zip(directories, joined, strict=True)))
    return [[members[position] for position in training.members] for training in trainings]


def _reports(recordings: "tuple[RecordingFile, ...]") -> "dict[RecordingFile, Report]":
    """Returns the report of each recording, from the cache if possible."""
    from tb_bottleneck.jobs.execution.rank_analysis import Task
    from tb_bottleneck.jobs.execution.run import analyse_all
    from tb_bottleneck.schema.bottleneck_pb2 import Report

    tasks = [Task(recording.path, recording.run, summarise=False) for recording in recordings]
    results = analyse_all(tasks, progress_bar())
    return dict(zip(recordings, (Report.FromString(result.report) for result in results), strict=True))
