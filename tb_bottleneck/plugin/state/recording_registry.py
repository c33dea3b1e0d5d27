"""The reports of all recordings: traces, which worker processes analyse, and telemetry, which the server reads."""

from collections.abc import Iterable
from pathlib import PurePath

from tb_bottleneck.plugin.state.telemetry_registry import TelemetryRegistry
from tb_bottleneck.plugin.workers.analysis_queue import AnalysisQueue, AnalysisState
from tb_bottleneck.report.digest import Digest
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.sources.logdir import RecordingFile


class RecordingRegistry:
    """Any thread may call every method."""

    def __init__(self, analyses: AnalysisQueue, telemetry: TelemetryRegistry) -> None:
        self._analyses = analyses
        self._telemetry = telemetry
        self._wanted: tuple[RecordingFile, ...] = ()

    def want(self, recordings: Iterable[RecordingFile]) -> None:
        """Makes these the only recordings to analyse."""
        self._wanted = wanted = tuple(recordings)
        self._analyses.want(recording for recording in wanted if not recording.is_telemetry)
        self._telemetry.want(recording for recording in wanted if recording.is_telemetry)

    def look(self, recording: RecordingFile) -> tuple[AnalysisState, Digest | None]:
        """Returns the recording's progress, and its digest once there is one."""
        return (self._telemetry if recording.is_telemetry else self._analyses).look(recording)

    def report(self, recording: RecordingFile) -> Report | AnalysisState:
        """Returns the recording's report, joined with existing reports of the other evidence source in the same
        directory and of equal ranks; or the progress of the analysis."""
        report = self._own_report(recording)
        if isinstance(report, AnalysisState):
            return report
        from tb_bottleneck.report.cross_check import join  # imports the rules
        from tb_bottleneck.report.equal_ranks import with_equal_predictions

        equal = [self._own_report(other) for other in self._equal_ranks(recording)]
        report = with_equal_predictions([report, *(other for other in equal if isinstance(other, Report))])[0]
        directory = _directory(recording)
        others = [self._own_report(other) for other in self._other_source(recording)]
        return join([(directory, report), *((directory, other) for other in others if isinstance(other, Report))])[0]

    def _own_report(self, recording: RecordingFile) -> Report | AnalysisState:
        return (self._telemetry if recording.is_telemetry else self._analyses).report(recording)

    def _equal_ranks(self, recording: RecordingFile) -> list[RecordingFile]:
        """Returns the analysed recordings of other ranks of the run with an equal account, the lowest ranks first."""
        from tb_bottleneck.report.equal_ranks import MAX_COMPARED, have_equal_accounts

        own = self.look(recording)[1]
        if not recording.is_trace or own is None or not own.account:
            return []
        equal: dict[int, RecordingFile] = {}
        for other in self._wanted:
            if other.run != recording.run or not other.is_trace or other == recording:
                continue
            digest = self.look(other)[1]
            if digest is None or digest.rank is None or digest.rank == own.rank:
                continue
            if have_equal_accounts(own.account, digest.account):
                equal.setdefault(digest.rank, other)
        return [other for _, other in sorted(equal.items())[:MAX_COMPARED]]

    def _other_source(self, recording: RecordingFile) -> list[RecordingFile]:
        """Returns the analysed recordings of the other evidence source in the same directory; without one, that of the
        logdir that a monitor writes to, if each source has only one recording there."""
        own = _directory(recording)
        if recording.is_snapshot:
            return []
        timed = [other for other in self._wanted if not other.is_snapshot]
        others = [other for other in timed if other.is_telemetry != recording.is_telemetry]
        near = [other for other in others if _directory(other) == own]
        if not near:
            logdir = _logdir(recording)
            beside = [other for other in timed if logdir and _logdir(other) == logdir]
            near = [other for other in beside if len(beside) == 2 and other in others]
        return [other for other in near if self.look(other)[1] is not None]


def _logdir(recording: RecordingFile) -> str:
    """Returns the logdir of a monitor's telemetry, or the directory of a trace."""
    from tb_bottleneck.report.cross_check import logdir_of

    return logdir_of(_directory(recording)) if recording.is_telemetry else _directory(recording)


def _directory(recording: RecordingFile) -> str:
    return PurePath(recording.path).parent.as_posix()
