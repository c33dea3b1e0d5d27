"""The answer to `runs`: the recordings under the logdir with the progress of their analyses."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import is_
from typing import Any

from tb_bottleneck.base.measure import Record
from tb_bottleneck.plugin.state.job_index import KnownJob
from tb_bottleneck.plugin.state.recording_registry import RecordingRegistry
from tb_bottleneck.plugin.state.run_index import LogdirScan, id_of
from tb_bottleneck.plugin.state.training_index import GroupedTraining, TrainingIndex
from tb_bottleneck.plugin.turns import in_turns
from tb_bottleneck.plugin.workers.analysis_queue import AnalysisState
from tb_bottleneck.report.digest import Digest
from tb_bottleneck.report.json_form import as_dict, refuse_not_finite
from tb_bottleneck.review.notes import state_of
from tb_bottleneck.review.trial_notes import measured_gains, measured_lead
from tb_bottleneck.schema.bottleneck_pb2 import RunEntry, RunList, Training
from tb_bottleneck.schema.review_pb2 import Review
from tb_bottleneck.sources.logdir import RecordingFile

ROWS_AT_A_TIME, TRAININGS_AT_A_TIME = 100, 50


class _Row(Record, frozen=True, gc=False):
    """The JSON text of one recording's entry in the list, with the inputs from which it was built."""

    state: AnalysisState
    digest: Digest | None
    review: Review | None
    text: str


@dataclass(frozen=True)
class _Snapshot:
    """The last answer and its parts. The next answer reuses the parts that did not change. Never modified."""

    scan: LogdirScan | None = None
    jobs: tuple[KnownJob, ...] = ()
    rows: dict[RecordingFile, _Row] = field(default_factory=dict)
    text: str = ""


class RunListBuilder:
    """Builds the list of recordings. The web page asks for this list every second. The list may be long, and little of
    it changes.

    Any thread may call `text`: this method builds the answer from an immutable snapshot of the last answer, and
    replaces the snapshot."""

    def __init__(self, logdir: str, analyses: RecordingRegistry) -> None:
        self._logdir = logdir
        self._analyses = analyses
        self._trainings = TrainingIndex()
        self._last = _Snapshot()

    def text(self, scan: LogdirScan | None) -> str:
        """Returns a `RunList` as JSON. `scan` is None until the first scan of the logdir has ended."""
        last, jobs = self._last, self._analyses.jobs
        recordings = scan.listing.recordings if scan is not None else ()
        reviews = scan.reviews if scan is not None else {}
        rows: dict[RecordingFile, _Row] = {}
        for each in in_turns(recordings, ROWS_AT_A_TIME):
            rows[each] = self._row(each, reviews.get(each), last.rows.get(each))
        unchanged = scan is not None and scan is last.scan and jobs is last.jobs
        if unchanged and all(map(is_, rows.values(), last.rows.values())):
            return last.text
        # The entries of recordings that did not change are not encoded again.
        lists = {
            "runs": f"[{','.join(row.text for row in rows.values())}]",
            "trainings": _json(self._grouped(rows, jobs)),
        }
        fields = {name: _json(value) for name, value in self._frame(scan).items()} | lists
        text = "{" + ",".join(f'"{name}":{value}' for name, value in fields.items()) + "}"
        self._last = _Snapshot(scan, jobs, rows, text)
        return text

    def _grouped(self, rows: dict[RecordingFile, _Row], jobs: tuple[KnownJob, ...]) -> list[dict[str, Any]]:
        """Returns the trainings that have several recordings, as dicts for JSON."""
        positions = {recording: position for position, recording in enumerate(rows)}
        trainings = self._trainings.trainings([(recording, row.digest) for recording, row in rows.items()], jobs)
        several = [each for each in trainings if len(each.recordings) > 1]
        return [_training(each, positions) for each in in_turns(several, TRAININGS_AT_A_TIME)]

    def _row(self, recording: RecordingFile, review: Review | None, last: _Row | None) -> _Row:
        state, digest = self._analyses.look(recording)
        if last is not None and last.state == state and last.digest is digest and last.review == review:
            return last
        return _Row(state, digest, review, _json(_entry(recording, state, digest, review)))

    def _frame(self, scan: LogdirScan | None) -> dict[str, Any]:
        if scan is None:
            return as_dict(RunList(state="scanning", logdir=self._logdir))
        return as_dict(RunList(state="ready", logdir=self._logdir, problems=scan.listing.problems))


def _json(values: Any) -> str:
    return json.dumps(values, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _training(training: GroupedTraining, positions: Mapping[RecordingFile, int]) -> dict[str, Any]:
    members = [positions[recording] for recording in training.recordings]
    message = Training(members=members, because=training.because, job=training.job, memory_alert=training.alert)
    refuse_not_finite(message)
    return as_dict(message)


def _entry(
    recording: RecordingFile, state: AnalysisState, digest: Digest | None, review: Review | None
) -> dict[str, Any]:
    source = recording.kind
    entry = RunEntry(
        id=id_of(recording),
        run=recording.run,
        source=recording.source,
        size_bytes=recording.size,
        modified_unix_ns=recording.mtime_ns,
        state=state.name,
        progress=state.progress,
        witness=source,
        evidence_source=source,
        live=digest is not None and digest.live,
        review=review,
    )
    if digest is not None:
        entry.MergeFrom(
            RunEntry(
                health=digest.health,
                reason=digest.reason,
                verdict=digest.verdict,
                step_ns=digest.step_ns,
                step_times_ns=digest.step_times_ns,
                device=digest.device,
                action=digest.action,
                gain=measured_lead(digest.gain, digest.causes, measured_gains(review)),
                open_findings=[state_of(review or Review(), cause).state for cause in digest.causes].count("open"),
                rank=digest.rank if digest.world_size > 1 else None,
                world_size=digest.world_size if digest.world_size > 1 else None,
                lost_share=digest.lost_share,
                efficiency=digest.efficiency,
                peak_bytes=digest.peak_bytes,
                headroom_bytes=digest.headroom_bytes,
                revision=digest.revision or None,
            )
        )
    refuse_not_finite(entry)
    return as_dict(entry)
