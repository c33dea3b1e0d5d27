"""The table of routes, and the handlers that the server itself answers. http_api.md is their contract."""

from werkzeug.wrappers import Request

from tb_bottleneck.plugin.http import static_files
from tb_bottleneck.plugin.http.comparison_routes import ComparisonRoutes, ledger_answer
from tb_bottleneck.plugin.http.drilldown_routes import DrilldownRoutes, answer_text
from tb_bottleneck.plugin.http.job_route import JobRoute, RecordingLookup, finite_number
from tb_bottleneck.plugin.http.live_route import LiveRoute
from tb_bottleneck.plugin.http.responses import App, Response, SharedResponse, application, error, message, pending
from tb_bottleneck.plugin.http.run_list import RunListBuilder
from tb_bottleneck.plugin.http.static_files import HostPolicy
from tb_bottleneck.plugin.state.job_index import JobIndex
from tb_bottleneck.plugin.state.recording_registry import RecordingRegistry
from tb_bottleneck.plugin.state.run_index import RunIndex, id_of
from tb_bottleneck.plugin.state.telemetry_registry import TelemetryRegistry
from tb_bottleneck.plugin.workers.analysis_queue import DONE, WAITING, AnalysisQueue, AnalysisState
from tb_bottleneck.plugin.workers.question_queue import QuestionQueue
from tb_bottleneck.report.source_lines import add_source, source_folder
from tb_bottleneck.schema.bottleneck_pb2 import ReportAnswer
from tb_bottleneck.schema.signals import PLUGIN_NAME


class Routes:
    """All HTTP routes of the plugin, and the state from which they answer. The methods are GET and HEAD.

    The server itself writes nothing to the disk for a request. A request for the list of runs, or for a recording by
    `id`, starts the analysis of those recordings that are not analysed yet, in the background."""

    def __init__(
        self,
        logdir: str,
        runs: RunIndex,
        analyses: AnalysisQueue,
        questions: QuestionQueue,
        telemetry: TelemetryRegistry,
        hosts: HostPolicy | None = None,
    ) -> None:
        self._hosts = hosts or HostPolicy()
        self._runs = runs
        self._telemetry = telemetry
        jobs = JobIndex(questions)
        self._recordings = RecordingRegistry(analyses, telemetry, jobs)
        self._lookup = RecordingLookup(runs, self._recordings)
        self._drilldown = DrilldownRoutes(self._lookup, questions)
        self._job = JobRoute(self._lookup, runs, analyses, questions, jobs)
        self._live = LiveRoute(runs)
        self._comparisons = ComparisonRoutes(runs, questions)
        self._run_list = RunListBuilder(logdir, self._recordings)
        self._source = source_folder()
        self._runs_response = SharedResponse(self._make_runs)

    def apps(self) -> dict[str, App]:
        """Returns a dict: path of a route -> WSGI application."""
        handlers = {
            "/runs": self.runs,
            "/report": self.report,
            "/job": self._job.job,
            "/ledger": self.ledger,
            "/timeline": self._drilldown.timeline,
            "/tree": self._drilldown.tree,
            "/slice": self._drilldown.slice,
            "/telemetry": self.telemetry,
            "/live": self._live.live,
            "/compare": self._comparisons.compare,
            "/series": self._comparisons.series,
            "/what_if": self._comparisons.what_if,
            "/devices": self._comparisons.devices,
            "/static/*": self.static,
        }
        # The files of the tab contain no data. They are served to every host, so that the tab can show the refusal.
        return {
            path: application(handler, None if handler == self.static else self._hosts)
            for path, handler in handlers.items()
        }

    def runs(self, request: Request) -> Response:
        """Replies with the list of all recordings under the logdir."""
        return self._runs_response.get()

    def _make_runs(self) -> Response:
        scan = self._runs.latest()
        if scan is not None:
            self._recordings.want(scan.listing.recordings, scan.listing.saved_jobs)
        return Response(self._run_list.text(scan).encode(), "application/json")

    def report(self, request: Request) -> Response:
        """Replies with the report of recording `id` and what reviewers wrote about it. While the recording is being
        analysed, replies with the progress."""
        recording = self._lookup.recording(request)
        if isinstance(recording, Response):
            return recording
        report = self._recordings.report(recording)
        if isinstance(report, AnalysisState):
            return pending(report)
        scan = self._runs.latest()
        review = scan.reviews.get(recording) if scan is not None else None
        if review is not None:
            from tb_bottleneck.review.measured import with_measured_gains  # here, because it imports the analysis

            report = with_measured_gains(report, review)
        answer = ReportAnswer(
            id=id_of(recording), state=DONE.name, progress=DONE.progress, report=report, review=review
        )
        add_source(answer.report, self._source)
        if self._source is not None:
            from tb_bottleneck.trial.source_patch import add_patches

            add_patches(answer.report, self._source)
        return message(answer)

    def ledger(self, request: Request) -> Response:
        """Replies with the predicted and the measured gains of fixes. While a recording of a fix is being analysed,
        replies with the progress."""
        scan = self._runs.latest()
        if scan is None:
            return pending(WAITING)
        self._recordings.want(scan.listing.recordings, scan.listing.saved_jobs)
        answer = ledger_answer(scan, self._recordings)
        return pending(answer) if isinstance(answer, AnalysisState) else message(answer)

    def telemetry(self, request: Request) -> Response:
        """Replies with the telemetry series of recording `id`."""
        recording = self._lookup.recording(request)
        if isinstance(recording, Response):
            return recording
        if not recording.is_telemetry:
            return error(404, "This is no telemetry; `runs` lists telemetry with the `evidence_source` telemetry.")
        try:
            points, since, until = (finite_number(request.args.get(name, "")) for name in ("points", "since", "until"))
        except ValueError:
            return error(400, "`points` must be a count, `since` and `until` ns since 1970; you can omit each of them.")
        entry = self._telemetry.entry(recording)
        with entry.lock:
            report = entry.update()
            text = answer_text(
                id_of(recording),
                entry,
                report,
                most=None if points is None else max(int(points), 0),
                since=int(since or 0),
                until=None if until is None else int(until),
            )
        return Response(text.encode(), "application/json")

    def static(self, request: Request) -> Response:
        """Replies with a file of the built web page. The path of the request has the name of the file after
        `static/`."""
        file = static_files.read(request.path.partition(f"/{PLUGIN_NAME}/static/")[2])
        return error(404, "The built tab has no such file.") if file is None else Response(*file)
