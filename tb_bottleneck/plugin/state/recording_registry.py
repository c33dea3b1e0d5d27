"""The reports of all recordings: traces, which worker processes analyse, and telemetry, which the server reads."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tb_bottleneck.plugin.state.job_index import JobIndex, KnownJob
from tb_bottleneck.plugin.state.telemetry_registry import TelemetryRegistry
from tb_bottleneck.plugin.state.training_index import TrainingIndex, directory_of, place_of_path
from tb_bottleneck.plugin.turns import short_turns
from tb_bottleneck.plugin.workers.analysis_queue import DONE, AnalysisQueue, AnalysisState
from tb_bottleneck.report.digest import Digest
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.sources.logdir import RecordingFile


@dataclass(frozen=True)
class _Wanted:
    """The recordings of one scan, sorted into groups once, because clients ask many times between two scans. Never
    modified."""

    recordings: tuple[RecordingFile, ...] = ()
    telemetry: frozenset[RecordingFile] = frozenset()
    others: frozenset[RecordingFile] = frozenset()
    by_place: Mapping[str, list[RecordingFile]] = field(default_factory=dict)
    traces_by_run: Mapping[str, list[RecordingFile]] = field(default_factory=dict)

    @classmethod
    def of(cls, recordings: Iterable[RecordingFile]) -> "_Wanted":
        recordings = tuple(recordings)  # the same object if it is a tuple already
        telemetry = frozenset(recording for recording in recordings if recording.is_telemetry)
        by_place: dict[str, list[RecordingFile]] = {}
        traces_by_run: dict[str, list[RecordingFile]] = {}
        for recording in recordings:
            by_place.setdefault(place_of_path(recording.path), []).append(recording)
            if recording.is_trace:
                traces_by_run.setdefault(recording.run, []).append(recording)
        return cls(recordings, telemetry, frozenset(recordings) - telemetry, by_place, traces_by_run)


class RecordingRegistry:
    """Provides the reports of all recordings, and their digests (short summaries). Any thread may call every method."""

    def __init__(self, analyses: AnalysisQueue, telemetry: TelemetryRegistry, jobs: JobIndex | None = None) -> None:
        self._analyses = analyses
        self._telemetry = telemetry
        self._jobs = jobs or JobIndex()
        self._wanted = _Wanted()
        self._replaced: Sequence[RecordingFile] | None = None  # the recordings of the previous scan
        self._taking_over = threading.Lock()

    def want(self, recordings: Sequence[RecordingFile], saved_jobs: Sequence[RecordingFile] = ()) -> None:
        """Makes `recordings` the only recordings to analyse. Ranks that a saved report of a job (`saved_jobs`)
        describes are analysed only on request. If `recordings` is the same object as in the last call, the time of a
        call does not depend on the number of recordings.

        Only one request takes over the recordings of a new scan; meanwhile, other requests answer from the previous
        scan. To take over thousands of recordings takes some ten ms, and many times as long if all requests do this at
        the same time."""
        if not self._taking_over.acquire(blocking=False):
            return
        try:
            if self._wanted.recordings is not recordings:
                if recordings is self._replaced:  # a request that began before the last scan ended
                    return
                with short_turns():
                    self._replaced, self._wanted = self._wanted.recordings, _Wanted.of(recordings)
            held = self._jobs.update(self._wanted.recordings, saved_jobs).held
            self._analyses.want(self._wanted.others, held)
            self._telemetry.want(self._wanted.telemetry)
        finally:
            self._taking_over.release()

    def look(self, recording: RecordingFile) -> tuple[AnalysisState, Digest | None]:
        """Returns the progress of the analysis of `recording`, and its digest; None if there is no digest yet."""
        state, digest = (self._telemetry if recording.is_telemetry else self._analyses).look(recording)
        if digest is None and (of_job := self._jobs.known.digests.get(recording)) is not None:
            return DONE, of_job
        return state, digest

    @property
    def jobs(self) -> tuple[KnownJob, ...]:
        """Returns the jobs that have a report of the whole job."""
        return self._jobs.known.jobs

    def report(self, recording: RecordingFile) -> Report | AnalysisState:
        """Returns the report of `recording`, or the progress of its analysis.

        Simulated gains are medians over the ranks of the run whose account (time per regime) is equal. The report is
        joined with existing reports about the same training from the other source of evidence (trace or telemetry)."""
        report = self._own_report(recording)
        if isinstance(report, AnalysisState):
            return report
        from tb_bottleneck.report.equal_ranks import with_equal_predictions

        equal = [self._own_report(other) for other in self._equal_ranks(recording)]
        report = with_equal_predictions([report, *(other for other in equal if isinstance(other, Report))])[0]
        return self._joined(recording, report)

    def _own_report(self, recording: RecordingFile) -> Report | AnalysisState:
        return (self._telemetry if recording.is_telemetry else self._analyses).report(recording)

    def _equal_ranks(self, recording: RecordingFile) -> list[RecordingFile]:
        """Returns analysed recordings of other ranks of the same run whose account equals that of `recording`, the
        lowest rank first."""
        from tb_bottleneck.report.equal_ranks import MAX_COMPARED, have_equal_accounts

        own = self.look(recording)[1]
        if not recording.is_trace or own is None or not own.account:
            return []
        equal: dict[int, RecordingFile] = {}
        for other in self._wanted.traces_by_run.get(recording.run, ()):
            if other == recording:
                continue
            digest = self.look(other)[1]
            if digest is None or digest.rank is None or digest.rank == own.rank:
                continue
            if have_equal_accounts(own.account, digest.account):
                equal.setdefault(digest.rank, other)
        return [other for _, other in sorted(equal.items())[:MAX_COMPARED]]

    def _joined(self, recording: RecordingFile, report: Report) -> Report:
        """Returns `report`, joined with existing reports about the same training from the other source of evidence
        (trace or telemetry)."""
        place = place_of_path(recording.path)
        known = [(each, self.look(each)[1]) for each in self._wanted.by_place.get(place, ())]
        jobs = [job for job in self.jobs if place_of_path(job.first.path) == place]
        trainings = TrainingIndex().trainings(known, jobs)
        # The recording belongs to no training yet while another request takes over the scan that found the recording.
        members = next((each.recordings for each in trainings if recording in each.recordings), ())
        located = [(directory_of(recording), report)]
        for other in members:
            if other.kind != recording.kind and self.look(other)[1] is not None:
                found = self._own_report(other)
                if isinstance(found, Report):
                    located.append((directory_of(other), found))
        if len(located) == 1:
            return report
        from tb_bottleneck.report.cross_check import join

        return join(located)[0]
