"""Answers questions about jobs: from a saved report or, if a job has few ranks, from their traces."""

import os
from collections.abc import Callable

from tb_bottleneck.base.errors import Unreadable, Unusable
from tb_bottleneck.jobs.execution.rank_analysis import Task, analyse
from tb_bottleneck.jobs.report.health import tables_of
from tb_bottleneck.jobs.report.job_report import judged_together
from tb_bottleneck.jobs.report.saved_job import JobTables, Stale, read
from tb_bottleneck.jobs.report.wording import headline_of
from tb_bottleneck.plugin.state.run_index import id_of
from tb_bottleneck.plugin.workers.questions import JobQuestion, SavedJobQuestion, TraceFile
from tb_bottleneck.report.json_form import save_command
from tb_bottleneck.report.rank_rows import make_brief, speaker_of
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.schema.job_pb2 import JobAnswer
from tb_bottleneck.sources.file_system import without_host
from tb_bottleneck.sources.logdir import RecordingFile

ProgressCallback = Callable[[int, int], None]
_PARTS = 1000  # number of parts into which the progress of one trace is divided


def saved_job(question: SavedJobQuestion) -> JobAnswer:
    """Returns the job from the first usable saved report in `question.saved` that contains `question.trace`.

    Raises:
        Unusable: no saved report can be used; the message says why.
    """
    reasons = []
    for file in question.saved:
        try:
            answer = read(file.path, question.run)
        except (Unreadable, Stale) as error:
            reasons.append(str(error))
            continue
        if os.path.basename(question.trace.path) in answer.ranks.source:
            paths = [os.path.join(os.path.dirname(file.path), name) for name in answer.ranks.source]
            answer.ranks.id.extend(id_of(RecordingFile(path, question.run, "", 0, 0)) for path in paths)
            if question.rows:
                answer.ClearField("steps")
            return _finished(answer, question.trace, question.brief)
    raise Unusable(reasons[0] if reasons else "no saved report is about the job of this rank")


def computed_job(question: JobQuestion, progress: ProgressCallback | None) -> JobAnswer:
    """Analyses the traces in `question.ranks` and returns their job.

    Raises:
        Unusable: the traces are not ranks of one job any more.
    """
    results = []
    for number, trace in enumerate(question.ranks):
        results.append(analyse(Task(trace.path, question.run), _part(progress, number, len(question.ranks))))
    found: list[JobAnswer] = []
    judged_together(
        [os.path.dirname(trace.path) for trace in question.ranks],
        [Report.FromString(result.report) for result in results],
        [result.summary for result in results],
        lambda *judged: found.append(_computed(tables_of(*judged))),
    )
    ids = {os.path.basename(trace.path): trace.id for trace in question.ranks}
    for answer in found:
        answer.ranks.id.extend(ids.get(source, "") for source in answer.ranks.source)
        if question.trace.id in answer.ranks.id:
            return _finished(answer, question.trace)
    raise Unusable("these recordings are not ranks of one job (any more)")


def _computed(tables: JobTables) -> JobAnswer:
    answer = JobAnswer(
        job=tables.job, ranks=tables.ranks, steps=tables.steps, pipeline=tables.pipeline, basis="computed"
    )
    answer.job.verdict.headline = headline_of(answer.job)  # without texts from the report of a single rank
    return answer


def _finished(answer: JobAnswer, trace: TraceFile, brief: bool = False) -> JobAnswer:
    """Completes `answer` with the fields that every answer has, such as its state and command, and returns it. With
    `brief`, only the verdict and the stragglers of the job remain."""
    answer.id, answer.state, answer.progress, answer.command = trace.id, "done", 1.0, save_command(trace.path)
    answer.ranks.source[:] = [without_host(source) for source in answer.ranks.source]
    speaker = speaker_of(answer.job, answer.ranks)
    if speaker is not None:
        answer.speaker = speaker
    if brief:
        make_brief(answer)
    return answer


def _part(progress: ProgressCallback | None, number: int, count: int) -> ProgressCallback | None:
    """Returns the progress callback for trace number `number` (from 0) of `count` traces. This callback calls
    `progress`, the callback for all traces. Returns None if `progress` is None."""
    if progress is None:
        return None
    whole = progress

    def report(done: int, total: int) -> None:
        whole(number * _PARTS + (done * _PARTS // total if total > 0 else 0), count * _PARTS)

    return report
