"""Answers the questions of questions.py. This module runs in the worker processes that answer questions."""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from google.protobuf.message import Message

from tb_bottleneck.comparison.compare import compare_runs
from tb_bottleneck.comparison.runs.compared_run import JudgedRun, UnjudgedRun, open_recordings, open_telemetry
from tb_bottleneck.comparison.runs.runs_from_reports import run_of
from tb_bottleneck.comparison.series.run_series import series_of
from tb_bottleneck.comparison.what_if.prediction import WhatIfOptions, what_if
from tb_bottleneck.comparison.what_if.table import what_if_table
from tb_bottleneck.drilldown.inspected_trace import TraceCache
from tb_bottleneck.drilldown.timeline import time_range_of, timeline_of
from tb_bottleneck.drilldown.trace_slice import slice_of
from tb_bottleneck.drilldown.tree.message import tree_message, tree_messages
from tb_bottleneck.drilldown.tree.selection import Selection
from tb_bottleneck.plugin.workers.job_answers import computed_job, saved_job
from tb_bottleneck.plugin.workers.questions import (
    ComparedRecording,
    CompareQuestion,
    JobQuestion,
    RecordingQuestion,
    SavedJobQuestion,
    SeriesQuestion,
    SliceQuestion,
    TimelineQuestion,
    TreeQuestion,
    WhatIfQuestion,
)
from tb_bottleneck.report.json_form import as_json
from tb_bottleneck.schema.comparison_pb2 import ComparisonAnswer, SeriesAnswer, WhatIfAnswer
from tb_bottleneck.schema.evidence_pb2 import TimelineAnswer, TreeAnswer
from tb_bottleneck.sources.file_system import without_host
from tb_bottleneck.sources.telemetry.event_files import is_event_file

ProgressCallback: TypeAlias = Callable[[int, int], None]


def answer(question: RecordingQuestion, traces: TraceCache, progress: ProgressCallback | None = None) -> bytes:
    """Returns the answer to `question`: a message of ../../schema as JSON, or a gzipped trace for a SliceQuestion.

    Raises:
        BottleneckError: the question has no answer; the message says why."""
    if isinstance(question, SliceQuestion):
        return _slice(question, traces, progress)
    return as_json(_message(question, traces, progress)).encode()


def _message(question: RecordingQuestion, traces: TraceCache, progress: ProgressCallback | None) -> Message:
    match question:
        case TimelineQuestion():
            return _timeline(question, traces, progress)
        case TreeQuestion():
            return _tree(question, traces, progress)
        case CompareQuestion():
            return _comparison(question, progress)
        case SeriesQuestion():
            return _series(question, progress)
        case WhatIfQuestion():
            return _what_if(question, progress)
        case SavedJobQuestion():
            return saved_job(question)
        case JobQuestion():
            return computed_job(question, progress)
    raise TypeError(f"there is no answer to a {type(question).__name__}")


def _slice(question: SliceQuestion, traces: TraceCache, progress: ProgressCallback | None) -> bytes:
    inspected = traces.get(question.trace.path, question.trace.mtime_ns, progress)
    time_range = time_range_of(inspected, question.begin_ns, question.end_ns, None)
    return slice_of(inspected.trace, time_range.begin, time_range.end)


def _timeline(question: TimelineQuestion, traces: TraceCache, progress: ProgressCallback | None) -> TimelineAnswer:
    inspected = traces.get(question.trace.path, question.trace.mtime_ns, progress)
    time_range = time_range_of(inspected, question.begin_ns, question.end_ns, question.pixels)
    timeline = timeline_of(inspected, time_range)
    return TimelineAnswer(id=question.trace.id, state="done", progress=1.0, timeline=timeline)


def _tree(question: TreeQuestion, traces: TraceCache, progress: ProgressCallback | None) -> TreeAnswer:
    inspected = traces.get(question.trace.path, question.trace.mtime_ns, progress)
    of_other = Selection(question.by, merged=question.merged)
    selection = replace(of_other, device=question.device, first_step=question.first_step, last_step=question.last_step)
    answer = TreeAnswer(id=question.trace.id, state="done", progress=1.0)
    if question.other is None:
        answer.tree.CopyFrom(tree_message(inspected, selection))
        return answer
    other = traces.get(question.other.path, question.other.mtime_ns, progress)
    tree, against = tree_messages(inspected, selection, other, of_other)
    answer.tree.CopyFrom(tree)
    answer.other.CopyFrom(against)
    return answer


def _comparison(question: CompareQuestion, progress: ProgressCallback | None) -> ComparisonAnswer:
    comparison = compare_runs(_open(question.a, progress), _open(question.b, progress))
    a, b = question.a.trace.id, question.b.trace.id
    return ComparisonAnswer(a=a, b=b, state="done", progress=1.0, comparison=comparison)


def _series(question: SeriesQuestion, progress: ProgressCallback | None) -> SeriesAnswer:
    ids = [recording.trace.id for recording in question.recordings]
    series = series_of([_open(recording, progress) for recording in question.recordings])
    return SeriesAnswer(ids=ids, state="done", progress=1.0, series=series)


def _what_if(question: WhatIfQuestion, progress: ProgressCallback | None) -> WhatIfAnswer:
    changes = WhatIfOptions(question.device, question.workers, question.batch, question.precision, question.link)
    run, answer = _open(question.recording, progress), WhatIfAnswer(state="done", progress=1.0)
    answer.id = question.recording.trace.id
    if changes == WhatIfOptions():
        answer.table.CopyFrom(what_if_table(run))
    else:
        answer.what_if.CopyFrom(what_if(run, changes))
    return answer


def _open(recording: ComparedRecording, progress: ProgressCallback | None) -> JudgedRun | UnjudgedRun:
    """Opens a recording together with the telemetry of the same run. Returns an UnjudgedRun, with the reasons, if the
    recording has no verdict."""
    if is_event_file(recording.trace.path):  # of a run without a trace
        timed = open_telemetry(recording.name, [recording.trace.path])
        return run_of(recording.name, [report for _, report, _ in timed])
    telemetry = [file.path for file in recording.telemetry]
    run = open_recordings(recording.name, [recording.trace.path], telemetry, progress)
    if not isinstance(run, UnjudgedRun):
        return run
    file = os.path.basename(recording.trace.path)  # the reasons begin with this name
    return replace(run, because=tuple(reason.replace(file, without_host(file)) for reason in run.because))
