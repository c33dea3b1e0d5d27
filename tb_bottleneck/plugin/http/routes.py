"""The routes of http_api.md: what is asked, checked, and answered. GET and HEAD only; nothing changes state."""

from collections.abc import Callable

from werkzeug.wrappers import Request

from tb_bottleneck.plugin.http import static_files
from tb_bottleneck.plugin.http.comparison_routes import Arguments, Comparisons, Refused, Said
from tb_bottleneck.plugin.http.drilldown_routes import finite, unanswered
from tb_bottleneck.plugin.http.ranks_route import ranks_answer
from tb_bottleneck.plugin.http.responses import Answer, App, application, message, sentence
from tb_bottleneck.plugin.http.run_list import RunListBuilder
from tb_bottleneck.plugin.http.telemetry_route import answer_text
from tb_bottleneck.plugin.state.recording_registry import RecordingRegistry
from tb_bottleneck.plugin.state.run_index import RunIndex
from tb_bottleneck.plugin.state.telemetry_registry import TelemetryRegistry
from tb_bottleneck.plugin.workers.analysis_queue import AnalysisQueue
from tb_bottleneck.plugin.workers.question_queue import QuestionQueue
from tb_bottleneck.schema.bottleneck_pb2 import ReportAnswer
from tb_bottleneck.schema.evidence_pb2 import RanksAnswer, TablesAnswer
from tb_bottleneck.schema.signals import PLUGIN_NAME
from tb_bottleneck.schema.telemetry_pb2 import TelemetryAnswer
from tb_bottleneck.sources.logdir import Recording


class Routes:
    """The handlers and what they answer from."""

    def __init__(
        self,
        logdir: str,
        runs: RunIndex,
        analyses: AnalysisQueue,
        questions: QuestionQueue,
        telemetries: TelemetryRegistry,
    ) -> None:
        self._runs = runs
        self._analyses = analyses
        self._questions = questions
        self._telemetries = telemetries
        self._comparisons = Comparisons(runs, questions)
        self._witnesses = RecordingRegistry(analyses, telemetries)
        self._lists = RunListBuilder(logdir, self._witnesses)

    def apps(self) -> dict[str, App]:
        """The one table of routes, as WSGI applications."""
        return {
            "/runs": application(self.runs),
            "/report": application(self.report),
            "/ranks": application(self.ranks),
            "/timeline": application(self.timeline),
            "/tables": application(self.tables),
            "/slice": application(self.slice),
            "/telemetry": application(self.telemetry),
            "/compare": application(_comparing(self._comparisons.compare)),
            "/series": application(_comparing(self._comparisons.series)),
            "/what_if": application(_comparing(self._comparisons.what_if)),
            "/devices": application(_comparing(self._comparisons.devices)),
            "/static/*": application(self.static),
        }

    def runs(self, request: Request) -> Answer:
        """Every recording under the logdir; the analysis of all of them starts with the first question."""
        look = self._runs.latest()
        if look is not None:
            self._witnesses.want(look.listing.recordings)
        return Answer(self._lists.text(look).encode(), "application/json")

    def report(self, request: Request) -> Answer:
        """One recording's report."""
        found = self._asked_for(request)
        if isinstance(found, Answer):
            return found
        if found is None:
            return message(ReportAnswer(id=request.args["id"], state="waiting"))
        return message(self._witnesses.answer(found))

    def ranks(self, request: Request) -> Answer:
        """The job that a recording is a rank of."""
        found = self._asked_for(request)
        if isinstance(found, Answer):
            return found
        look = self._runs.latest()
        if found is None or look is None:
            return message(RanksAnswer(id=request.args["id"]))
        return message(ranks_answer(found, look, self._analyses))

    def timeline(self, request: Request) -> Answer:
        """A stretch of a recording's timeline."""
        return self._closer(request, "timeline", ("begin", "end", "pixels"))

    def tables(self, request: Request) -> Answer:
        """What ran in a recording's window."""
        return self._closer(request, "tables", ())

    def slice(self, request: Request) -> Answer:
        """A stretch of a recording as a trace of its own."""
        return self._closer(request, "slice", ("begin", "end"))

    def telemetry(self, request: Request) -> Answer:
        """The series of a run, as dense as was asked for."""
        found = self._asked_for(request)
        if isinstance(found, Answer):
            return found
        asked = request.args["id"]
        if found is None:
            return message(TelemetryAnswer(id=asked))
        if not found.is_telemetry:
            return sentence(404, "This recording is a trace; `runs` lists telemetry with `evidence_source` telemetry.")
        try:
            most, since, until = (finite(request.args.get(name, "")) for name in ("points", "since", "until"))
        except ValueError:
            return sentence(400, "`points` is a count, `since` and `until` are ns since 1970: give numbers, or none.")
        heard = self._telemetries.heard(found)
        with heard.lock:
            report = heard.brought_up_to_date()
            wanted = None if most is None else max(int(most), 0)
            text = answer_text(asked, heard, report, wanted, int(since or 0), None if until is None else int(until))
        return Answer(text.encode(), "application/json")

    def _asked_for(self, request: Request) -> Recording | Answer | None:
        """The recording that the request names; an Answer where it names none, None while nobody has looked yet."""
        asked = request.args.get("id", "")
        if not asked:
            route = request.path.rpartition("/")[2]
            return sentence(400, f"Which recording? Ask {route}?id=ID with an id that `runs` lists.")
        look = self._runs.latest()
        if look is None:
            return None
        recording = look.by_id.get(asked)
        if recording is None:
            return sentence(404, "No recording has this id now; ask `runs` for those that are there.")
        self._witnesses.want(look.listing.recordings)
        return recording

    def _closer(self, request: Request, ask: str, numbers: tuple[str, ...]) -> Answer:
        """The answer of the process for questions, or how far it is."""
        found = self._asked_for(request)
        if isinstance(found, Answer):
            return found
        if found is not None and found.is_telemetry:
            return sentence(404, "This recording is telemetry, without a timeline; ask telemetry?id=ID for its series.")
        asked = request.args["id"]
        if found is None:
            return message(TablesAnswer(id=asked, state="waiting"))
        about: dict[str, str | float | None] = {}
        for name in numbers:
            try:
                about[name] = finite(request.args.get(name, ""))
            except ValueError:
                return sentence(400, f"`{name}` is no number: leave it out, or give nanoseconds on the trace's clock.")
        question = {"ask": ask, "id": asked, "path": found.path, "mtime_ns": found.mtime_ns, **about}
        reply = self._questions.ask(question)
        if isinstance(reply, bytes):
            return Answer(reply, "application/json", encoding="gzip" if ask == "slice" else None)
        return message(unanswered(asked, reply))

    def static(self, request: Request) -> Answer:
        """A file of the built tab."""
        found = static_files.read(request.path.partition(f"/{PLUGIN_NAME}/static/")[2])
        return Answer(*found) if found else sentence(404, "The built tab has no such file.")


def _comparing(handler: Callable[[Arguments], Said]) -> Callable[[Request], Answer]:
    """A handler of plugin/http/comparison_routes.py as one of ours."""

    def answered(request: Request) -> Answer:
        said = handler(request.args)
        if isinstance(said, Refused):
            return sentence(said.code, said.text)
        return Answer(said, "application/json") if isinstance(said, bytes) else message(said)

    return answered
