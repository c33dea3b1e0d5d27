"""Reads the parameters of a request: the recording that it names by id, and numbers."""

import math

from werkzeug.wrappers import Request

from tb_bottleneck.plugin.http.responses import Response, error, pending
from tb_bottleneck.plugin.state.recording_registry import RecordingRegistry
from tb_bottleneck.plugin.state.run_index import RunIndex
from tb_bottleneck.plugin.workers.analysis_queue import WAITING
from tb_bottleneck.sources.logdir import RecordingFile

LARGEST_NS = 2.0**62  # beyond any recording's clock, and still an integer of 64 bits


class RecordingLookup:
    """Finds the recordings that requests name. Any thread may call every method."""

    def __init__(self, runs: RunIndex, recordings: RecordingRegistry) -> None:
        self._runs = runs
        self._recordings = recordings

    def recording(self, request: Request) -> RecordingFile | Response:
        """Returns the recording with the request's id, or the response that says why there is none. Starts the analysis
        of all recordings."""
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
        """Returns the trace with the id in another parameter, or the response that says why there is none."""
        scan = self._runs.latest()
        if scan is None:
            return pending(WAITING)
        recording = scan.by_id.get(request.args.get(name, ""))
        if recording is None or recording.is_telemetry:
            return error(404, f"There is no trace with the id in `{name}` (any more); `runs` lists all ids.")
        return recording

    def trace(self, request: Request) -> RecordingFile | Response:
        """Like `recording`, for routes that need a trace."""
        recording = self.recording(request)
        if isinstance(recording, RecordingFile) and recording.is_telemetry:
            return error(404, "This recording is telemetry and has no timeline; telemetry?id=ID returns its series.")
        if isinstance(recording, RecordingFile) and recording.is_snapshot:
            return error(404, "This recording is a snapshot of an allocator; report?id=ID has all of it.")
        return recording


def finite_number(text: str) -> float | None:
    """Returns the number, or None for an empty text.

    Raises:
        ValueError: the text is not a number, or not a possible time in ns.
    """
    if not text:
        return None
    value = float(text)
    if not math.isfinite(value) or abs(value) > LARGEST_NS:
        raise ValueError(text)
    return value
