"""The route `job?id=...`, and the lookup of the recordings and numbers that requests name."""

import math
from collections.abc import Sequence

from google.protobuf import json_format
from werkzeug.wrappers import Request

from tb_bottleneck.plugin.http.responses import Response, client_of, error, message, pending, worker_reply
from tb_bottleneck.plugin.state.job_index import JobIndex, saved_question, state_of_traces
from tb_bottleneck.plugin.state.recording_registry import RecordingRegistry
from tb_bottleneck.plugin.state.run_index import LogdirScan, RunIndex, id_of
from tb_bottleneck.plugin.workers.analysis_queue import WAITING, AnalysisQueue, AnalysisState
from tb_bottleneck.plugin.workers.question_queue import QuestionQueue
from tb_bottleneck.plugin.workers.questions import JobQuestion, TraceFile
from tb_bottleneck.report.digest import Digest
from tb_bottleneck.report.jobs import jobs_in, jobs_of
from tb_bottleneck.report.json_form import save_command
from tb_bottleneck.report.rank_rows import make_brief, rank_rows
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.schema.job_pb2 import JobAnswer, RankTable
from tb_bottleneck.sources.logdir import RecordingFile
from tb_bottleneck.workers.ipc import Refusal, WorkerFailure

LARGEST_NS = 2.0**62  # beyond any recording's clock, and still an integer of 64 bits


class RecordingLookup:
    """Finds the recordings that HTTP requests name. Any thread may call every method."""

    def __init__(self, runs: RunIndex, recordings: RecordingRegistry) -> None:
        self._runs = runs
        self._recordings = recordings

    def recording(self, request: Request) -> RecordingFile | Response:
        """Returns the recording with the request's parameter `id`. Also starts the analysis of all recordings.

        Returns an error response if there is no such recording, and the response `pending` until the first scan of the
        logdir has ended."""
        requested_id = request.args.get("id", "")
        if not requested_id:
            route = request.path.rpartition("/")[2]
            return error(400, f"The parameter `id` is missing: use {route}?id=ID with an id that `runs` lists.")
        scan = self._runs.latest()
        if scan is None:
            return pending(WAITING)
        recording = scan.by_id.get(requested_id)
        if recording is None:
            return error(404, "There is no recording with this id (any more); `runs` lists all ids.")
        self._recordings.want(scan.listing.recordings, scan.listing.saved_jobs)
        return recording

    def other_trace(self, request: Request, name: str) -> RecordingFile | Response:
        """Returns the trace whose id is in the request's parameter `name`.

        Returns an error response if there is no such recording or if the recording is no trace, and the response
        `pending` until the first scan of the logdir has ended."""
        scan = self._runs.latest()
        if scan is None:
            return pending(WAITING)
        recording = scan.by_id.get(request.args.get(name, ""))
        if recording is None or not recording.is_trace:
            return error(404, f"There is no trace with the id in `{name}` (any more); `runs` lists all ids.")
        return recording

    def trace(self, request: Request) -> RecordingFile | Response:
        """Returns the trace with the request's parameter `id`, as `recording` does. Also returns an error response if
        the recording is no trace."""
        recording = self.recording(request)
        if isinstance(recording, RecordingFile) and recording.is_telemetry:
            return error(404, "This recording is telemetry and has no timeline; telemetry?id=ID returns its series.")
        if isinstance(recording, RecordingFile) and recording.is_snapshot:
            return error(404, "This recording is a snapshot of an allocator; report?id=ID has all of it.")
        return recording


def finite_number(text: str) -> float | None:
    """Returns `text` as a number, or None if `text` is empty.

    Raises:
        ValueError: the text is not a number, or not a possible time in ns.
    """
    if not text:
        return None
    value = float(text)
    if not math.isfinite(value) or abs(value) > LARGEST_NS:
        raise ValueError(text)
    return value


MAX_COMPUTED = 8
"""Maximum number of ranks of a job whose traces a worker process reads again on request. Each trace takes seconds."""

MAX_WAITED = 64
"""In runs with up to this many traces, a job is shown when all traces are analysed. In larger runs, a job is shown at
once, from the traces that are analysed so far."""


class JobRoute:
    """The HTTP handler of the route `job`, which replies with the job that a recording is a rank of.

    The server itself reads no trace. A worker process reads the saved report of the job. Without a saved report, a
    worker process reads the traces if the job has at most MAX_COMPUTED ranks. Otherwise the job is judged by the
    accounts (time per regime) of the ranks that are analysed so far."""

    def __init__(
        self, lookup: RecordingLookup, runs: RunIndex, analyses: AnalysisQueue, questions: QuestionQueue, jobs: JobIndex
    ) -> None:
        self._lookup = lookup
        self._runs = runs
        self._analyses = analyses
        self._questions = questions
        self._jobs = jobs

    def job(self, request: Request) -> Response:
        """Replies with the job that the trace `id` belongs to. With `brief=1`, the reply has only the verdict of the
        job."""
        recording = self._lookup.trace(request)
        if isinstance(recording, Response):
            return recording
        scan = self._runs.latest()
        if scan is None:
            return pending(WAITING)
        brief = request.args.get("brief", "") == "1"
        because = ""
        saved = [file for file in scan.listing.saved_jobs if file.run == recording.run]
        state = state_of_traces(_traces(recording, scan)) if saved else ""
        if question := saved_question(recording, saved, state, brief):
            reply = self._questions.ask(question, client=client_of(request))
            if not isinstance(reply, Refusal | WorkerFailure):
                return worker_reply(reply)
            because = _sentence(reply)
        return self._from_ranks(recording, scan, brief, because, client_of(request))

    def _from_ranks(
        self, recording: RecordingFile, scan: LogdirScan, brief: bool, because: str, client: str
    ) -> Response:
        """Returns the job of `recording`, computed from its ranks in `scan`. If `brief` is True, the reply has only the
        verdict of the job.

        `because` is the reason why a saved report cannot be used, or empty. `client` identifies who asks."""
        traces = _traces(recording, scan)
        known = [(each, digest) for each in traces if (digest := self._analyses.look(each)[1]) is not None]
        if len(known) < len(traces) <= MAX_WAITED:
            return pending(AnalysisState("analysing", len(known) / len(traces)))
        answer = _accounts(recording, [(each, digest) for each, digest in known if digest.rank is not None])
        answer.because = because
        if answer.basis == "accounts" and len(answer.ranks.rank) <= MAX_COMPUTED:
            by_id = {id_of(each): each for each in traces}
            ranks = tuple(TraceFile.of(id_, by_id[id_]) for id_ in answer.ranks.id)
            reply = self._questions.ask(
                JobQuestion(TraceFile.of(answer.id, recording), recording.run, ranks), client=client
            )
            if isinstance(reply, bytes):
                self._jobs.learn(reply, traces)
            if isinstance(reply, bytes) and brief:
                computed = json_format.Parse(reply, JobAnswer())
                make_brief(computed)
                return message(computed)
            if not isinstance(reply, Refusal | WorkerFailure):
                return worker_reply(reply)
            answer.because = _sentence(reply)
        if not answer.because:
            answer.because = _default_reason(answer, len(known), len(traces))
        if brief:
            make_brief(answer)
        return message(answer)


def _traces(recording: RecordingFile, scan: LogdirScan) -> list[RecordingFile]:
    return [each for each in scan.listing.recordings if each.run == recording.run and each.is_trace]


def _accounts(recording: RecordingFile, known: Sequence[tuple[RecordingFile, Digest]]) -> JobAnswer:
    """Returns the job that `recording` belongs to, computed from the digests in `known`. If the recording belongs to no
    job, the answer has no job."""
    reports = [_as_report(each, digest) for each, digest in known]
    answer = JobAnswer(
        id=id_of(recording), state="done", progress=1.0, basis="none", command=save_command(recording.path)
    )
    members = next((job for job in jobs_in(reports) if recording in (known[position][0] for position in job)), [])
    if members:
        answer.basis = "accounts"
        answer.job.CopyFrom(jobs_of([reports[position] for position in members])[0])
        answer.ranks.CopyFrom(_table({reports[position].rank: position for position in members}, reports, known))
    return answer


def _table(
    by_rank: dict[int, int], reports: Sequence[Report], known: Sequence[tuple[RecordingFile, Digest]]
) -> RankTable:
    table = rank_rows({rank: reports[position] for rank, position in by_rank.items()})
    table.id.extend(id_of(known[by_rank[rank]][0]) for rank in table.rank)
    return table


def _as_report(recording: RecordingFile, digest: Digest) -> Report:
    """Returns a report with only those fields, taken from `digest`, that `jobs_of` and `rank_rows` read."""
    report = Report(
        run=recording.run,
        source=recording.source,
        rank=digest.rank,
        world_size=digest.world_size,
        verdict=digest.verdict,
        account=digest.account,
        membership=digest.membership,
    )
    report.window.step_ns.mean = digest.step_ns or 0.0
    return report


def _sentence(reply: Refusal | WorkerFailure) -> str:
    return reply.sentence if isinstance(reply, Refusal) else f"The job could not be computed: {reply.detail}."


def _default_reason(answer: JobAnswer, analysed: int, all_: int) -> str:
    if answer.basis == "none":
        return "No other recording of this run is about a rank of the same job and has a verdict."
    so_far = f" {analysed:,} of {all_:,} recordings are analysed so far." if analysed < all_ else ""
    return f"TensorBoard itself reads the traces of at most {MAX_COMPUTED} ranks together.{so_far}"
