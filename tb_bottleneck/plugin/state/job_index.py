"""The reports of jobs that the list of recordings shows: saved reports, and those that were computed on request.

A worker process reads the saved reports. The rows of the ranks in the list come from the tables in these reports, so
the traces of these ranks need no analysis. While a saved report is being read, the traces in its directory are not
analysed either.
"""

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Protocol

from google.protobuf import json_format

from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.plugin.state.run_index import LruCache, id_of
from tb_bottleneck.plugin.workers.analysis_queue import AnalysisState
from tb_bottleneck.plugin.workers.questions import RecordingQuestion, SavedJobQuestion, TraceFile
from tb_bottleneck.report.digest import Digest
from tb_bottleneck.report.rank_rows import first_action, gain_of, named_rank
from tb_bottleneck.schema.bottleneck_pb2 import AccountRow, Health, Job, Report, TrainingJob, Verdict
from tb_bottleneck.sources.logdir import JOB_ENDING, RecordingFile
from tb_bottleneck.workers.process import Reply

MAX_SAVED = 32
"""Maximum number of saved reports of one run that are read, the newest first."""

MAX_COMPUTED_KEPT = 256


class Questions(Protocol):
    """Answers questions about the saved reports of jobs."""

    def ask(self, question: RecordingQuestion, client: str, patience: float) -> Reply | AnalysisState:
        """Returns the reply to `question`, or the progress if there is no reply within `patience` seconds. `client`
        identifies who asks."""


@dataclass(frozen=True)
class KnownJob:
    """A job (a training on several ranks) that has a report.

    `recordings` are those of its ranks, in order of rank. `first` is the recording of the rank that explains the
    verdict of the job. `summary` is what the list of recordings shows about the job."""

    recordings: tuple[RecordingFile, ...]
    first: RecordingFile
    summary: TrainingJob


@dataclass(frozen=True)
class KnownJobs:
    """All jobs that have a report.

    `digests` has the digests (short summaries) of the ranks in saved reports. `held` are the traces that are analysed
    only on request: those with a digest in `digests`, and those in directories with a saved report that is still being
    read."""

    jobs: tuple[KnownJob, ...] = ()
    digests: Mapping[RecordingFile, Digest] = field(default_factory=dict)
    held: frozenset[RecordingFile] = frozenset()


@dataclass(frozen=True)
class _Scan:
    """The recordings and saved reports of one scan, and the questions about these reports. Never modified."""

    recordings: Sequence[RecordingFile] = ()
    saved: Sequence[RecordingFile] = ()
    questions: tuple[tuple[RecordingFile, SavedJobQuestion], ...] = ()


@dataclass(frozen=True)
class _SavedJob:
    """A job whose report was saved to a file. The object is kept until the traces change, so that the rows of its ranks
    are built only once."""

    job: KnownJob
    digests: Mapping[RecordingFile, Digest]


class JobIndex:
    """Finds and keeps the jobs that have a report. Any thread may call every method."""

    def __init__(self, questions: Questions | None = None) -> None:
        self._questions = questions
        self._scan = _Scan()
        self._read: dict[SavedJobQuestion, _SavedJob | None] = {}  # None: the saved report cannot be used
        self._computed: LruCache[tuple[RecordingFile, ...], KnownJob] = LruCache(MAX_COMPUTED_KEPT)
        self._known = KnownJobs()
        self._complete = True

    @property
    def known(self) -> KnownJobs:
        """The jobs that had a report at the last call of `update`."""
        return self._known

    def update(self, recordings: Sequence[RecordingFile], saved: Sequence[RecordingFile]) -> KnownJobs:
        """Returns the known jobs of `recordings`. `saved` are the files of saved job reports.

        Sends worker processes the questions about saved reports that were not read yet, without waiting for the
        replies; a later call returns their jobs.
        """
        scan = self._scan
        if scan.recordings is not recordings or scan.saved is not saved:
            self._scan = scan = _Scan(recordings, saved, tuple(_questions(recordings, saved)))
            self._read = {question: self._read[question] for _, question in scan.questions if question in self._read}
        elif self._complete:
            return self._known
        pending = [trace for trace, question in scan.questions if not self._is_read(question, recordings)]
        self._complete = not pending
        self._known = _together(scan, self._read, pending, self._computed)
        return self._known

    def learn(self, reply: bytes, recordings: Iterable[RecordingFile]) -> None:
        """Stores the job in `reply`, a JobAnswer as JSON. The job was computed from some of `recordings`. Does nothing
        if the job has fewer than two ranks or a rank that is not in `recordings`, or is known already."""
        by_id = {id_of(recording): recording for recording in recordings}
        job, table = _parsed(reply)
        members = [by_id.get(id_) for id_ in table.get("id", ())]
        found = tuple(member for member in members if member is not None)
        if len(found) < 2 or len(found) < len(members) or self._computed.get(found) is not None:
            return
        self._computed.put(found, _known_job(job, table, found))
        self._complete = False

    def _is_read(self, question: SavedJobQuestion, recordings: Iterable[RecordingFile]) -> bool:
        """Returns True if there is a reply to `question`, which is about a saved report, or if no process can answer
        questions. Otherwise asks a worker process without waiting. `recordings` are those of the scan."""
        if question not in self._read and self._questions is not None:
            reply = self._questions.ask(question, patience=0.0, client="list")
            if not isinstance(reply, AnalysisState):
                self._read[question] = _saved_job(reply, recordings) if isinstance(reply, bytes) else None
        return question in self._read or self._questions is None


def saved_question(
    recording: RecordingFile, saved: Iterable[RecordingFile], state: str, brief: bool = False, rows: bool = False
) -> SavedJobQuestion | None:
    """Returns the question about the saved report of the job that `recording` belongs to; None if `saved` is empty.

    `saved` are the saved reports of the run. `state` is the state of the run's traces (`state_of_traces`). `brief` and
    `rows` are as in SavedJobQuestion."""
    newest = sorted(saved, key=attrgetter("mtime_ns", "path"), reverse=True)[:MAX_SAVED]
    files = tuple(TraceFile.of("", file) for file in newest)
    trace = TraceFile.of(id_of(recording), recording)
    return SavedJobQuestion(trace, recording.run, files, state, brief, rows) if files else None


def state_of_traces(traces: Iterable[RecordingFile]) -> str:
    """Returns a hash of the paths, sizes and modification times of `traces`."""
    state = hashlib.sha256()
    for trace in traces:
        state.update(os.fsencode(trace.path) + f"\0{trace.size}\0{trace.mtime_ns}\0".encode())
    return state.hexdigest()[:32]


def _questions(
    recordings: Sequence[RecordingFile], saved: Sequence[RecordingFile]
) -> Iterable[tuple[RecordingFile, SavedJobQuestion]]:
    """Yields a pair for each saved report: the trace of the lowest rank, and the question about the report. The newest
    report of each run comes first."""
    by_run: dict[str, list[RecordingFile]] = {}
    for file in sorted(saved, key=attrgetter("mtime_ns", "path"), reverse=True):
        by_run.setdefault(file.run, []).append(file)
    traces: dict[str, list[RecordingFile]] = {run: [] for run in by_run}
    for recording in recordings:
        if recording.is_trace and recording.run in traces:
            traces[recording.run].append(recording)
    for run, files in by_run.items():
        state, by_path = state_of_traces(traces[run]), {trace.path: trace for trace in traces[run]}
        for file in files[:MAX_SAVED]:
            lowest = by_path.get(file.path.removesuffix(JOB_ENDING))
            question = saved_question(lowest, [file], state, rows=True) if lowest is not None else None
            if lowest is not None and question is not None:
                yield lowest, question


def _together(
    scan: _Scan,
    read: Mapping[SavedJobQuestion, _SavedJob | None],
    pending: Iterable[RecordingFile],
    computed: LruCache[tuple[RecordingFile, ...], KnownJob],
) -> KnownJobs:
    jobs: list[KnownJob] = []
    digests: dict[RecordingFile, Digest] = {}
    for _, question in scan.questions:
        saved = read.get(question)
        if saved is not None and digests.keys().isdisjoint(saved.digests):  # else a newer report is about these traces
            jobs.append(saved.job)
            digests |= saved.digests
    computed.keep(set(scan.recordings).issuperset)
    jobs += [job for job in computed.values() if digests.keys().isdisjoint(job.recordings)]
    directories = {os.path.dirname(trace.path) for trace in pending}
    waiting = [each for each in scan.recordings if each.is_trace and os.path.dirname(each.path) in directories]
    return KnownJobs(tuple(jobs), digests, frozenset([*digests, *(waiting if directories else ())]))


def _parsed(reply: bytes) -> tuple[Job, dict[str, Any]]:
    """Returns the job in `reply`, and the table of its ranks as a dict of columns. The table is not a message, because
    messages are slow with thousands of ranks."""
    answer = json.loads(reply)
    return json_format.ParseDict(answer["job"], Job()), answer["ranks"]


def _saved_job(reply: bytes, recordings: Iterable[RecordingFile]) -> _SavedJob | None:
    """Returns the job in `reply`, the answer about a saved report; None if a recording of a rank is not in
    `recordings`."""
    by_id = {id_of(recording): recording for recording in recordings if recording.is_trace}
    job, table = _parsed(reply)
    ranks = [by_id.get(id_) for id_ in table["id"]]
    members = tuple(rank for rank in ranks if rank is not None)
    if len(members) < len(ranks):
        return None
    return _SavedJob(_known_job(job, table, members), dict(zip(members, _digests(job, table, members), strict=True)))


def _known_job(job: Job, table: Mapping[str, Any], members: tuple[RecordingFile, ...]) -> KnownJob:
    named = named_rank(job)
    first = members[table["rank"].index(named)] if named in table["rank"] else members[0]
    summary = TrainingJob(
        verdict=job.verdict, world_size=job.world_size, ranks=len(members), gain=gain_of(job), action=first_action(job)
    )
    return KnownJob(members, first, summary)


def _digests(job: Job, table: Mapping[str, Any], members: Collection[RecordingFile]) -> Iterable[Digest]:
    """Yields a digest for each rank in `table`, the table of the ranks. These digests have no sentences and no memory.
    `members` are the recordings of the ranks."""
    columns = {column["regime"]: column["share"] for column in table["account"]}
    for row, recording in enumerate(members):
        shares = {regime: float(columns[regime][row]) if regime in columns else 0.0 for regime in REGIMES}
        regime = table["regime"][row]
        verdict = Verdict(
            regime=regime, title=Regime(regime).label, severity=table["severity"][row], share=shares.get(regime, 0.0)
        )
        step_ns = float(table["step_ns"][row])
        yield Digest.of(
            Report(
                run=recording.run,
                source=recording.source,
                evidence_source="trace",
                rank=table["rank"][row],
                world_size=job.world_size,
                health=Health(status="ok"),  # a rank of a job has a verdict
                verdict=verdict,
                window={"step_ns": {"mean": step_ns}} if step_ns > 0 else None,
                account=[AccountRow(regime=name, share=share) for name, share in shares.items()],
            )
        )
