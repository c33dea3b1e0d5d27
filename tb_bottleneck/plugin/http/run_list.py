"""The answer to `runs`: the recordings under the logdir with the progress of their analyses."""

import json
from dataclasses import dataclass, field
from operator import is_
from typing import Any

from tb_bottleneck.plugin.state.recording_registry import RecordingRegistry
from tb_bottleneck.plugin.state.run_index import LogdirScan, id_of
from tb_bottleneck.plugin.workers.analysis_queue import AnalysisQueue, AnalysisState
from tb_bottleneck.report.digest import Digest
from tb_bottleneck.report.rendering.json_form import as_dict, refuse_not_finite
from tb_bottleneck.review.states import state_of
from tb_bottleneck.schema.bottleneck_pb2 import RunEntry, RunList
from tb_bottleneck.schema.review_pb2 import Review
from tb_bottleneck.sources.logdir import RecordingFile


@dataclass(frozen=True)
class _Row:
    """One recording's entry as JSON-ready values, with the inputs that it was built from."""

    state: AnalysisState
    digest: Digest | None
    review: Review | None
    values: dict[str, Any]


@dataclass(frozen=True)
class _Snapshot:
    """The last answer; the next one reuses the parts that did not change. Never modified."""

    scan: LogdirScan | None = None
    rows: dict[RecordingFile, _Row] = field(default_factory=dict)
    text: str = ""


class RunListBuilder:
    """Builds the list of recordings. A tab asks every second; the list may be long, and little of it changes.

    Any thread may call `text`: it builds its answer from an immutable snapshot of the last one, and replaces it.
    """

    def __init__(self, logdir: str, analyses: "AnalysisQueue | RecordingRegistry") -> None:
        self._logdir = logdir
        self._analyses = analyses
        self._last = _Snapshot()

    def text(self, scan: LogdirScan | None) -> str:
        """Returns a `RunList` as JSON. `scan` is None until the first scan of the logdir has ended."""
        last = self._last
        recordings = scan.listing.recordings if scan is not None else ()
        reviews = scan.reviews if scan is not None else {}
        rows = {each: self._row(each, reviews.get(each), last.rows.get(each)) for each in recordings}
        if scan is not None and scan is last.scan and all(map(is_, rows.values(), last.rows.values())):
            return last.text
        answer = self._frame(scan) | {"runs": [row.values for row in rows.values()]}
        text = json.dumps(answer, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        self._last = _Snapshot(scan, rows, text)
        return text

    def _row(self, recording: RecordingFile, review: Review | None, last: _Row | None) -> _Row:
        state, digest = self._analyses.look(recording)
        if last is not None and last.state is state and last.digest is digest and last.review == review:
            return last
        return _Row(state, digest, review, _entry(recording, state, digest, review))

    def _frame(self, scan: LogdirScan | None) -> dict[str, Any]:
        if scan is None:
            return as_dict(RunList(state="scanning", logdir=self._logdir))
        return as_dict(RunList(state="ready", logdir=self._logdir, problems=scan.listing.problems))


def _entry(
    recording: RecordingFile, state: AnalysisState, digest: Digest | None, review: Review | None
) -> dict[str, Any]:
    source = "telemetry" if recording.is_telemetry else "snapshot" if recording.is_snapshot else "trace"
    entry = RunEntry(
        id=id_of(recording),
        run=recording.run,
        source=recording.source,
        size_bytes=recording.size,
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
                gain=digest.gain,
                open_findings=[state_of(review or Review(), cause).state for cause in digest.causes].count("open"),
            )
        )
    refuse_not_finite(entry)
    return as_dict(entry)
