"""Routes that compare recordings, or predict the step time of a recording under other conditions.

The routes are ledger, compare, series, what_if, devices.
"""

import os
from collections.abc import Callable, Sequence

from werkzeug.wrappers import Request

from tb_bottleneck.knowledge.gpus import known_names
from tb_bottleneck.plugin.http.responses import Response, client_of, error, message, pending, worker_reply
from tb_bottleneck.plugin.state.recording_registry import RecordingRegistry
from tb_bottleneck.plugin.state.run_index import LogdirScan, RunIndex, id_of
from tb_bottleneck.plugin.workers.analysis_queue import WAITING, AnalysisState
from tb_bottleneck.plugin.workers.question_queue import QuestionQueue
from tb_bottleneck.plugin.workers.questions import (
    ComparedRecording,
    CompareQuestion,
    RecordingQuestion,
    SeriesQuestion,
    TelemetryFile,
    TraceFile,
    WhatIfQuestion,
)
from tb_bottleneck.review.notes import by_name
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.schema.comparison_pb2 import DeviceList
from tb_bottleneck.schema.review_pb2 import Ledger
from tb_bottleneck.sources.logdir import RecordingFile


def ledger_answer(scan: LogdirScan, recordings: RecordingRegistry) -> Ledger | AnalysisState:
    """Returns the ledger: the fixes that reviewers stated, with their predicted and measured gains.

    Returns an AnalysisState while a recording of a fix has no report yet. At most 50 fixes are considered.
    """
    from tb_bottleneck.review.ledger import fixes_of, ledger  # here, because it imports the whole comparison

    fixes = fixes_of(scan.notes)
    named = by_name(scan.listing.recordings) if fixes else {}
    reports: dict[str, Report] = {}
    for name in dict.fromkeys(name for fix in fixes for name in (fix.subject, fix.fixed_in) if name in named):
        report = recordings.report(named[name])
        if isinstance(report, AnalysisState):
            return report
        reports[name] = report
    return ledger(fixes, reports.get)


MAX_SERIES_RUNS = 12  # each stays in memory until the answer is computed
MAX_TELEMETRY_FILES = 4  # event files that are read for one run
MONITOR_FOLDER = "tb_bottleneck"  # the monitor's own folder in the folder of the run
LARGEST_NUMBER = 1 << 30
MAX_TEXT_LENGTH = 200  # characters, of a device's name for example
TEXTS, NUMBERS = ("device", "precision", "link"), ("workers", "batch")


class ComparisonRoutes:
    """The HTTP handlers of the routes `compare`, `series`, `what_if` and `devices`. A worker process computes the
    answers, except that of `devices`."""

    def __init__(self, runs: RunIndex, questions: QuestionQueue) -> None:
        self._runs = runs
        self._questions = questions

    def compare(self, request: Request) -> Response:
        """Replies with the comparison of the recordings `a` and `b`, given by their ids."""
        ids = [request.args.get(name, "") for name in ("a", "b")]
        if not all(ids):
            return error(400, "A parameter is missing: use compare?a=ID&b=ID with ids that `runs` lists.")
        return self._ask(request, ids, lambda recordings: CompareQuestion(*recordings))

    def series(self, request: Request) -> Response:
        """Replies with the comparison of 2 to MAX_SERIES_RUNS recordings, in the order of the `id` parameters."""
        ids = request.args.getlist("id")
        if not 2 <= len(ids) <= MAX_SERIES_RUNS or not all(ids):
            return error(400, f"Use series?id=ID&id=ID... with 2 to {MAX_SERIES_RUNS} ids that `runs` lists.")
        return self._ask(request, ids, lambda recordings: SeriesQuestion(tuple(recordings)))

    def what_if(self, request: Request) -> Response:
        """Replies with the prediction for recording `id` under other conditions.

        Without conditions, replies with a table of predictions for common conditions."""
        ids = [request.args.get("id", "")]
        if not all(ids):
            return error(
                400, "The parameter `id` is missing: use what_if?id=ID&device=NAME with an id that `runs` lists."
            )
        texts = {name: request.args.get(name, "") or None for name in TEXTS}
        if any(text is not None and len(text) > MAX_TEXT_LENGTH for text in texts.values()):
            return error(400, f"A name has at most {MAX_TEXT_LENGTH} characters; `devices` lists the known devices.")
        numbers: dict[str, int | None] = {}
        for name in NUMBERS:
            text = request.args.get(name, "")
            if text and not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) <= LARGEST_NUMBER):
                return error(400, f"`{name}` must be a whole number of at most {LARGEST_NUMBER}.")
            numbers[name] = int(text) if text else None
        return self._ask(
            request,
            ids,
            lambda recordings: WhatIfQuestion(
                recordings[0],
                device=texts["device"],
                workers=numbers["workers"],
                batch=numbers["batch"],
                precision=texts["precision"],
                link=texts["link"],
            ),
        )

    def devices(self, request: Request) -> Response:
        """Replies with the names of the devices that `what_if` accepts."""
        return message(DeviceList(names=known_names()))

    def _ask(
        self,
        request: Request,
        ids: Sequence[str],
        new_question: Callable[[Sequence[ComparedRecording]], RecordingQuestion],
    ) -> Response:
        """Returns the reply to a question about the recordings with the ids `ids`. `new_question` makes the question
        from these recordings. The reply is an error 404 if one of the recordings does not exist."""
        scan = self._runs.latest()
        if scan is None:
            return pending(WAITING)
        recordings = [scan.by_id[requested_id] for requested_id in ids if requested_id in scan.by_id]
        if len(recordings) < len(ids):
            return error(404, "There is no recording with one of these ids (any more); `runs` lists all ids.")
        compared = [compared_recording(recording, scan) for recording in recordings]
        return worker_reply(self._questions.ask(new_question(compared), client=client_of(request)))


def compared_recording(recording: RecordingFile, scan: LogdirScan) -> ComparedRecording:
    """Returns `recording` in the form that questions contain, together with the telemetry files of the same run."""
    name = recording.source if recording.run in ("", ".") else f"{recording.run}/{recording.source}"
    telemetry = telemetry_beside(recording, scan.listing.recordings)
    files = tuple(TelemetryFile(file.path, file.mtime_ns) for file in telemetry)
    return ComparedRecording(name, TraceFile.of(id_of(recording), recording), files)


def telemetry_beside(recording: RecordingFile, candidates: Sequence[RecordingFile]) -> list[RecordingFile]:
    """Returns the newest telemetry files in the folder of `recording` or in its monitor folder, oldest first.

    The files are taken from `candidates`. At most MAX_TELEMETRY_FILES files are returned."""
    folder = os.path.dirname(recording.path)
    monitor_folder = os.path.join(folder, MONITOR_FOLDER)
    files = [
        candidate
        for candidate in candidates
        if candidate.is_telemetry
        and (
            os.path.dirname(candidate.path) in (folder, monitor_folder)
            or candidate.path.startswith(monitor_folder + os.sep)
        )
    ]
    return sorted(files, key=lambda file: file.mtime_ns)[-MAX_TELEMETRY_FILES:]
