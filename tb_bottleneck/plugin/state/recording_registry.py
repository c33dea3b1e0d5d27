"""Both kinds of recordings behind one door: traces, which processes analyse, and telemetry, which is listened to."""

from collections.abc import Iterable
from pathlib import PurePath

from tb_bottleneck.plugin.state.run_index import id_of
from tb_bottleneck.plugin.state.telemetry_registry import TelemetryRegistry
from tb_bottleneck.plugin.workers.analysis_queue import DONE, AnalysisQueue, AnalysisState, Digest
from tb_bottleneck.schema.bottleneck_pb2 import Report, ReportAnswer
from tb_bottleneck.sources.logdir import Recording


class RecordingRegistry:
    """Every method may be called by any thread."""

    def __init__(self, analyses: AnalysisQueue, telemetries: TelemetryRegistry) -> None:
        self._analyses = analyses
        self._telemetries = telemetries
        self._wanted: tuple[Recording, ...] = ()

    def want(self, recordings: Iterable[Recording]) -> None:
        """Makes these, and only these, the recordings to be judged."""
        self._wanted = wanted = tuple(recordings)
        self._analyses.want(recording for recording in wanted if not recording.is_telemetry)
        self._telemetries.want(recording for recording in wanted if recording.is_telemetry)

    def look(self, recording: Recording) -> tuple[AnalysisState, Digest | None]:
        """How far this recording is, and its digest once there is one."""
        return (self._telemetries if recording.is_telemetry else self._analyses).look(recording)

    def answer(self, recording: Recording) -> ReportAnswer:
        """The recording's report, or how far it is, joined with the other witness's where that was judged already."""
        state, report = self._ask(recording)
        if report is not None:
            from tb_bottleneck.report.cross_check import join  # brings the rules with it

            others = [self._ask(one)[1] for one in self._beside(recording)]
            place = _place(recording)
            report = join([(place, report), *((place, other) for other in others if other is not None)])[0]
        return ReportAnswer(id=id_of(recording), state=state.name, progress=state.progress, report=report)

    def _ask(self, recording: Recording) -> tuple[AnalysisState, Report | None]:
        if recording.is_telemetry:
            return DONE, self._telemetries.report(recording)
        return self._analyses.ask(recording)

    def _beside(self, recording: Recording) -> list[Recording]:
        """The recordings of the other kind in the same directory that have been judged."""
        others = [one for one in self._wanted if one.is_telemetry != recording.is_telemetry]
        near = [one for one in others if _place(one) == _place(recording)]
        return [one for one in near if self.look(one)[1] is not None]


def _place(recording: Recording) -> str:
    return PurePath(recording.path).parent.as_posix()
